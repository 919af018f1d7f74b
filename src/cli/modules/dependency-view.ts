/** The dependencies of a module as a tree for people and as a graph for Graphviz. */
import type { DependencyNode } from '../../language/dependency-graph.js';
import { type Line, type Span, styled } from '../view.js';

type Graph = readonly DependencyNode[];

/** Each resource once, below the last of those that it waits for; the others it waits for are named behind it. */
export function dependencyLines(graph: Graph): readonly Line[] {
  const children = new Map<number, number[]>();
  const roots: number[] = [];
  for (const [at, { after }] of graph.entries()) {
    const parent = after.at(-1)?.to;
    if (parent === undefined) roots.push(at);
    else children.set(parent, [...(children.get(parent) ?? []), at]);
  }
  const below = (siblings: readonly number[], indent: string, isTop: boolean): readonly Line[] =>
    siblings.flatMap((at, index): readonly Line[] => {
      const isLast = index === siblings.length - 1;
      const [branch, next] = isTop ? ['', ''] : isLast ? ['└─ ', '   '] : ['├─ ', '│  '];
      const head: Line = [styled('dim', `${indent}${branch}${at + 1} `), ...spansOf(graph, at)];
      return [head, ...below(children.get(at) ?? [], indent + next, false)];
    });
  return graph.length === 0 ? ['No resources.'] : below(roots, '', true);
}

function spansOf(graph: Graph, at: number): readonly Span[] {
  const node = graph[at];
  if (node === undefined) return [];
  const others = node.after.slice(0, -1).map(({ to, reasons }) => `${to + 1} (${reasons.join(', ')})`);
  const why = node.after.at(-1)?.reasons.join(', ');
  return [
    titleOf(node),
    ...(why === undefined ? [] : [styled('dim', `  ${why}`)]),
    ...(others.length === 0 ? [] : [styled('dim', `; also after ${others.join(', ')}`)]),
  ];
}

/** `conf: file-unix /etc/site.conf`. */
const titleOf = ({ id, kinds, identities }: DependencyNode): string =>
  `${id === null ? '' : `${id}: `}${kinds.join('|')} ${identities.join(' or ')}`;

/** The Graphviz source; arrows go from what comes first to what waits for it. */
export function dependencyDot(name: string, graph: Graph): string {
  const nodes = graph.map((node, at) => `  n${at} [label=${quote(`${at + 1}  ${titleOf(node)}`)}];`);
  const edges = graph.flatMap(({ after }, at) =>
    after.map(({ to, reasons }) => `  n${to} -> n${at} [label=${quote(reasons.join(', '))}];`),
  );
  return [`digraph ${quote(name)} {`, '  rankdir=LR;', '  node [shape=box];', ...nodes, ...edges, '}'].join('\n');
}

const quote = (text: string): string =>
  `"${text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ').replace(/[\\"]/g, '\\$&')}"`;
