/** The merged set in the order of application, each resource with the positions of those that come before it. */
import { mapped, type Steps } from '../kernel/steps.js';
import type { Span } from '../kernel/tainted.js';
import type { DesiredResource } from '../resources/desired.js';
import { keyOf, type MergedSet, type Node } from './merge.js';
import { findCycles, stableOrder } from './order.js';
import { quoted } from './printable.js';
import { placeOf, type Realized } from './realize.js';
import { type ResolutionError, throwErrors } from './resolution-error.js';

/** Something worth a look that stops nothing; `path` is a JSON pointer in the module. */
export interface ResolutionWarning {
  readonly module: string;
  readonly path: string;
  readonly message: string;
}

interface Sequence {
  readonly resources: readonly DesiredResource[];
  readonly warnings: readonly ResolutionWarning[];
}

/** What a node waits for, as positions of nodes. */
interface Links {
  readonly after: Set<number>;
  readonly triggers: Map<string, Set<number>>;
}

/** Orders the set and links it. Throws `module_conflict` when merged modules wait for each other. */
export function* sequence(realized: readonly Realized[], merged: MergedSet): Steps<Sequence> {
  const { nodes } = merged;
  const links = yield* linksOf(realized, merged);
  const dependencies = yield* mapped(links, ({ after }) => [...after]);
  const order = stableOrder(dependencies) ?? failWithCycle(nodes, dependencies);
  const turns: number[] = [];
  for (const [turn, node] of order.entries()) turns[node] = turn;
  const turnOf = (node: number): number => turns[node] ?? -1;
  const warnings: ResolutionWarning[] = [];
  const resources = yield* mapped(order, (position) => {
    const [node, link] = [nodes[position], links[position]];
    if (node === undefined || link === undefined) throw new Error(`position ${position} of the order has no resource`);
    for (const holder of holdersOf(node, merged)) {
      if (turnOf(holder) < turnOf(position)) link.after.add(holder);
      else if (holder !== position) warnings.push(declaredTooEarly(node, nodes[holder]));
    }
    return desiredOf(node, link, turnOf);
  });
  return { resources, warnings };
}

/** Dependencies and triggers of every place that a node is declared at. */
function* linksOf(realized: readonly Realized[], { nodes, positions }: MergedSet): Steps<readonly Links[]> {
  const links = nodes.map((): Links => ({ after: new Set(), triggers: new Map() }));
  let start = 0;
  for (const [index, { module, resource, option }] of realized.entries()) {
    if (realized[start]?.module !== module) start = index;
    const position = positions[index] ?? -1;
    const link = links[position];
    if (link === undefined) continue;
    // Every resource of the module is in the set, in the order of its declaration.
    const nodeOf = (target: number): number => positions[start + target] ?? -1;
    const add = (set: Set<number>, target: number) => nodeOf(target) !== position && set.add(nodeOf(target));
    for (const target of resource.dependsOn) add(link.after, target);
    for (const { field, targets } of option.triggers) {
      const set = link.triggers.get(field) ?? new Set();
      link.triggers.set(field, set);
      for (const target of targets) {
        add(link.after, target);
        add(set, target);
      }
    }
    yield;
  }
  return links;
}

/** Nodes that a node's kind wants to be there first, of those that are declared. */
function holdersOf({ first }: Node, { byKey }: MergedSet): readonly number[] {
  const required = first.option.kind.kind.requires(first.body);
  return required.flatMap(({ family, identity }) => byKey.get(keyOf(family, identity, first.module.name)) ?? []);
}

function declaredTooEarly({ first }: Node, holder: Node | undefined): ResolutionWarning {
  const where = holder ? ` of ${placeOf(holder.first.module, holder.first.resource)}` : '';
  const message = `${quoted(first.identity)} is declared before ${quoted(holder?.first.identity ?? '')}${where}, which has to be there first`;
  return { module: first.module.name, path: first.option.path, message };
}

function desiredOf(
  { first, taint }: Node,
  { after, triggers }: Links,
  turnOf: (node: number) => number,
): DesiredResource {
  const sorted = (set: ReadonlySet<number>): number[] => [...set].map(turnOf).sort((a, b) => a - b);
  const { module, resource, option, identity, body } = first;
  return {
    module: module.name,
    kind: option.kind.kind.kind,
    identity,
    id: resource.id,
    name: resource.name,
    body,
    ...(taint.size > 0 && { taint: mutableTaint(taint) }),
    after: after.size === 0 ? [] : sorted(after),
    ...(triggers.size > 0 && {
      triggers: Object.fromEntries([...triggers].map(([field, set]) => [field, sorted(set)])),
    }),
  };
}

const mutableTaint = (taint: ReadonlyMap<string, readonly Span[]>): Record<string, Span[]> =>
  Object.fromEntries([...taint].map(([path, spans]) => [path, [...spans]]));

/** No module has a cycle of its own, so that one arises only where modules share resources. */
function failWithCycle(nodes: readonly Node[], dependencies: readonly (readonly number[])[]): never {
  const errors = findCycles(dependencies).map((cycle): ResolutionError => {
    const places = cycle.flatMap((position) => nodes[position]?.places ?? []);
    const names = [...cycle, cycle[0] ?? 0].map((position) => quoted(nodes[position]?.first.identity ?? ''));
    const modules = [...new Set(places.map(({ module }) => `"${module.name}"`))];
    return {
      code: 'module_conflict',
      module: places[0]?.module.name ?? '',
      path: places[0]?.resource.path ?? '',
      message: `modules ${modules.join(' and ')} together make a dependency cycle: ${names.join(' -> ')}`,
    };
  });
  throwErrors(errors);
  throw new Error('an order without a cycle was not found');
}
