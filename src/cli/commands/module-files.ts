/** The commands of `orch module` that read module files: validate, check, deps, publish and diff. */

import type { ApiClient } from '../../client/api-client.js';
import type { Assignment } from '../../contract/assignments.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { type DependencyNode, dependencyGraph } from '../../language/dependency-graph.js';
import type { AgentFacts } from '../../language/evaluate.js';
import type { FileDigests } from '../../language/files-beside.js';
import type { NamedSet } from '../../language/inputs/fleet-values.js';
import type { Context } from '../context.js';
import { argument, argumentList, defineCommand, optionalList } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { agentName, count } from '../format.js';
import { allAgents } from '../list-pages.js';
import { type CheckedAgent, type Conflict, checkTogether } from '../modules/check-together.js';
import { type Compared, comparedLines, compareWith } from '../modules/compare-files.js';
import { differingFiles } from '../modules/files-beside.js';
import { anyYamlOption, readModuleFiles } from '../modules/find-modules.js';
import { publishModules, triedFiles } from '../modules/publish.js';
import { allowAutomaticOption } from '../modules/reach.js';
import {
  checkFiles,
  checkText,
  diagnosticLines,
  matchingAssignments,
  type ReadModule,
  readModules,
  requireValid,
  storedFiles,
  summarizeErrors,
  validFiles,
} from '../modules/read-modules.js';
import { type Uploaded, validated } from '../modules/send-modules.js';
import { storedSets, valuesOf } from '../modules/stored-values.js';
import { splitPaths, withFiles } from '../modules/value-files.js';
import { factsOfAgents } from '../nodes/agent-facts.js';
import { integer, list, text } from '../options.js';
import { headed, type Line, lines, linesOf, proseOf, type Span, stack, stackOf, styled } from '../outcome.js';
import { plainText } from '../render/paint.js';
import { readAttributes, readTags } from '../tag-arguments.js';
import { storeEdited } from '../text-files.js';

/** `orch module validate`. */
export const validateModules = defineCommand({
  examples: ['orch module validate site.orch.yaml', 'orch module validate modules/'],
  detail: ['Needs no orchestrator. Shows all errors at once. Ends with 1 if a file has an error.'],
  access: 'local',
  args: { paths: argumentList('PATH', 'module files, or directories whose *.orch.yaml are all checked', 'file') },
  options: { anyYaml: anyYamlOption },
  run: async (_context, { paths, anyYaml }) => {
    const files = checkFiles(readModuleFiles(paths, { anyYaml }));
    const errors = summarizeErrors(files);
    const message =
      errors === null
        ? styled('good', `${count(files.length, 'file is', 'files are')} valid.`)
        : styled('bad', `${errors}.`);
    return {
      body: files.map(({ path, name, valid, diagnostics }) => ({ path, name, valid, diagnostics })),
      names: files.flatMap(({ name }) => name ?? []),
      view: stackOf([...files.map((file) => linesOf(diagnosticLines(file))), lines(message)]),
      exitStatus: errors === null ? EXIT.done : EXIT.error,
    };
  },
});

/** `orch module check`. */
export const checkModules = defineCommand({
  examples: [
    'orch module check modules/',
    'orch module check modules/ --attribute platform=linux --attribute distro=debian --tag role=web',
  ],
  detail: [
    'Resolves the modules together, for each approved agent those that support it. Shows conflicts, variants that are',
    'missing or tied, inputs without a value, and expressions that cannot be evaluated. *.values.yaml replace stored',
    'value sets. Secrets count as present. --tag and --attribute describe an agent without an orchestrator. Uploads',
    'nothing. Ends with 1 on errors.',
  ],
  access: 'local',
  connection: true,
  args: {
    paths: argumentList('PATH', 'files of modules and value sets, or directories whose files are all checked', 'file'),
  },
  options: {
    tag: list('KEY=VALUE', 'a tag of the agent to check for'),
    attribute: list('KEY=VALUE', 'an attribute of the agent to check for, such as platform=linux'),
  },
  run: async (context, { paths, tag, attribute }) => {
    const split = splitPaths(paths);
    const modules = readModules(split.modules);
    const described = tag.length > 0 || attribute.length > 0;
    const tags = readTags(tag);
    const fleet = described ? null : await readFleet(context, modules);
    const agents = fleet?.agents ?? [imagined(tags, readAttributes(attribute))];
    const sets = withFiles(fleet?.sets ?? [], split.values);
    const checked = agents.map((agent) =>
      checkTogether(agent, modules, valuesOf(sets, matchingAssignments(fleet?.assignments ?? [], agent))),
    );
    const errors = distinct(checked.flatMap((one) => one.errors));
    return {
      body: checked,
      names: checked.filter((one) => one.errors.length > 0).map(({ name }) => name),
      view: stack(
        proseOf(conflictLines(checked)),
        proseOf([...unusedLines(checked, modules), summary(checked, errors)]),
      ),
      exitStatus: errors.length === 0 ? EXIT.done : EXIT.error,
    };
  },
});

/** `orch module deps`. */
export const showDependencies = defineCommand({
  examples: ['orch module deps site.orch.yaml', 'orch module deps site.orch.yaml -o dot | dot -Tsvg > site.svg'],
  detail: [
    'Lists the resources in the order of application, each below a dependency: depends_on, triggers, or its',
    'directory. Needs no orchestrator. The variants of a resource count together. -o dot is for Graphviz.',
  ],
  access: 'local',
  formats: ['dot'],
  args: { path: argument('PATH', 'a module file', 'file') },
  run: async (_context, { path }) => {
    const [module, other] = readModules([path]);
    if (!module || other) throw new Fault('usage', `${path} holds several modules; name one file`);
    const graph = dependencyGraph(module.definition);
    const name = module.name;
    return {
      body: { name, resources: graph },
      names: graph.map(nameOf),
      view: headed(name, linesOf(dependencyLines(graph))),
      dot: dependencyDot(name, graph),
    };
  },
});

/** `orch module publish`. */
export const publishModuleFiles = defineCommand({
  examples: [
    'orch module publish site.orch.yaml',
    'orch module publish modules/',
    'orch module publish --from web-01',
    'orch module publish --from web-01 site',
    'orch module publish --any-yaml legacy/',
  ],
  detail: [
    'Every machine that has the modules follows the new revisions. First it shows whom that reaches:',
    'machines that get it at once (assignments in mode enforce), when they connect (on-connect), or with their next',
    'apply. On a terminal it asks. Without one, and with --yes, it refuses to reach machines by enforce or on-connect',
    'without --allow-automatic-applies. --from publishes what a machine has on trial: see orch apply. Stores nothing',
    'unless every file is valid.',
  ],
  access: 'operator',
  consent: true,
  args: {
    paths: optionalList(
      'PATH',
      'module files, or directories whose *.orch.yaml are all published; modules with --from',
      'file',
    ),
  },
  options: {
    from: text('NODE', 'publish what this machine has on trial', { completes: 'node' }),
    allowAutomaticApplies: allowAutomaticOption,
    anyYaml: anyYamlOption,
  },
  run: async (context, { paths, from, allowAutomaticApplies, anyYaml }) => {
    if (from === undefined && paths.length === 0) {
      throw new Fault('usage', 'there is nothing to publish: name a file, a directory or --from NODE', {
        hint: 'orch module publish FILE, or orch module publish --from NODE',
      });
    }
    const read = from === undefined ? await validated(readModuleFiles(paths, { anyYaml })) : null;
    const api = await context.api();
    const files = read ?? (await triedFiles(context, api, { node: from ?? '', modules: paths }));
    const published = await publishModules(context, api, files, { isAllowed: allowAutomaticApplies });
    if (published === null) throw new Fault('cancelled', 'not confirmed, nothing was published');
    const bodies = published.map(({ path: _, ...body }) => body);
    return {
      body: bodies.length === 1 ? bodies[0] : bodies,
      names: published.map(({ name }) => name),
      view: proseOf(published.map(publishedLine)),
    };
  },
});

const publishedLine = ({ name, path, changed, revision }: Uploaded): string =>
  changed ? `Published revision ${revision} of ${name} (${path}).` : `Unchanged: ${name} (${path}).`;

/** `orch module edit`. */
export const editModule = defineCommand({
  examples: ['orch module edit nginx'],
  detail: [
    'Opens the module in your editor (VISUAL, else EDITOR), and publishes what you leave, as orch module publish',
    'does. A text with errors can be edited again. If the module was changed meanwhile, nothing is stored, and your',
    'text is kept in a file. To change the files beside it, use orch module pull and publish.',
  ],
  access: 'operator',
  consent: true,
  args: { name: argument('MODULE', 'name of the module', 'module') },
  options: { allowAutomaticApplies: allowAutomaticOption },
  run: async (context, { name, allowAutomaticApplies }) => {
    const { signal } = context;
    const api = await context.api();
    const { content, sha256, files } = await api.call('getModule', {
      params: { name },
      query: { revision: null },
      signal,
    });
    const findFile = await storedFiles(api, files, signal);
    const path = `${name}.orch.yaml`;
    const check = (source: string) => checkText({ path, source }, findFile);
    const text = {
      text: content,
      ending: `.${path}`,
      instead: `pull it, change it, and publish it: orch module pull ${name}`,
    };
    const source = await context.prompt.edit(`Edit ${path}`, text, (edited) => {
      const file = check(edited);
      if (!file.valid) return diagnosticLines(file).map(plainText).join('\n');
      return file.name === name
        ? null
        : `its name has to stay ${name}; a module of another name is published from a file`;
    });
    const edited = validFiles([check(source)]).map((file) => ({ ...file, replaces: sha256 }));
    const done = await storeEdited({ name: path, text: source, warn: context.warn }, async () => {
      const published = await publishModules(context, api, edited, { isAllowed: allowAutomaticApplies });
      const [one] = published ?? [];
      if (one === undefined) throw new Fault('cancelled', 'not confirmed, nothing was published');
      return one;
    });
    const { path: _, ...body } = done;
    return { body, names: [name], view: proseOf([publishedLine(done)]) };
  },
});

/** `orch module diff`. */
export const diffModules = defineCommand({
  examples: ['orch module diff site.orch.yaml', 'orch module diff site.orch.yaml --revision 3'],
  detail: ['Shows what publishing would change. Publishes nothing.'],
  access: 'viewer',
  args: { paths: argumentList('PATH', 'module files, or directories whose *.orch.yaml are all compared', 'file') },
  options: { revision: integer('N', 'compare with an older revision [the current one]', 1) },
  run: async (context, { paths, revision }) => {
    const files = requireValid(readModuleFiles(paths));
    const api = await context.api();
    const compared: Compared[] = [];
    for (const file of files) compared.push(await compare(context, api, { ...file, revision: revision ?? null }));
    const changed = compared.filter(({ has_changes }) => has_changes);
    return {
      body: compared.length === 1 ? compared[0] : compared,
      names: changed.map(({ name }) => name),
      view: stackOf(compared.map((one) => linesOf(comparedLines(one)))),
    };
  },
});

const imagined = (tags: AgentFacts['tags'], attributes: AgentFacts['attributes']): AgentFacts => ({
  node_id: '0'.repeat(32),
  name: 'the described agent',
  tags,
  attributes,
});

/** Agents, assignments and value sets of an orchestrator. */
interface Fleet {
  readonly agents: readonly AgentFacts[];
  readonly assignments: readonly Assignment[];
  readonly sets: readonly NamedSet[];
}

async function readFleet(context: Context, modules: readonly ReadModule[]): Promise<Fleet> {
  const { signal } = context;
  try {
    const api = await context.api();
    const agents = await allAgents(api, { status: 'approved', signal });
    if (agents.length > 0) {
      const assignments = await api.call('listAssignments', { signal });
      const named = await factsOfAgents(api, agents, { modules, signal, nameOf: agentName });
      return { agents: named, assignments, sets: await storedSets(api, signal) };
    }
  } catch (error) {
    if (!isFault(error, 'unreachable')) throw error;
    throw new Fault('unreachable', error.message, { hint: DESCRIBE, cause: error });
  }
  throw new Fault('usage', 'there is no approved agent to check for', { hint: DESCRIBE });
}

const DESCRIBE = 'describe an agent, such as with: --attribute platform=linux --tag role=web';

/** Merges the same conflict on several agents. */
const distinct = (conflicts: readonly Conflict[]): readonly Conflict[] => [
  ...new Map(conflicts.map((conflict) => [keyOf(conflict), conflict])).values(),
];

const keyOf = ({ path, line, column, code, message }: Conflict): string =>
  JSON.stringify([path, line, column, code, message]);

function conflictLines(checked: readonly CheckedAgent[]): readonly Line[] {
  const problemLines = (kind: 'errors' | 'warnings', word: Line): readonly Line[] =>
    distinct(checked.flatMap((one) => one[kind])).flatMap((conflict): readonly Line[] => {
      const agents = checked.filter((one) => one[kind].some((other) => keyOf(other) === keyOf(conflict)));
      const { path, line, column, message } = conflict;
      const head: Line = [
        `${path}:${line}:${column}: `,
        ...(typeof word === 'string' ? [word] : [word].flat()),
        message,
      ];
      return checked.length === 1 ? [head] : [head, styled('dim', `  on ${namesOf(agents)}`)];
    });
  return [
    ...problemLines('errors', styled('bad', 'error: ')),
    ...problemLines('warnings', styled('warn', 'warning: ')),
  ];
}

/** Maximum number of listed names; the rest is counted. */
const NAMED = 5;

function namesOf(agents: readonly CheckedAgent[]): string {
  const more = agents.length > NAMED ? ` and ${agents.length - NAMED} more` : '';
  return `${agents
    .slice(0, NAMED)
    .map(({ name }) => name)
    .join(', ')}${more}`;
}

const unusedLines = (checked: readonly CheckedAgent[], modules: readonly ReadModule[]): readonly Line[] =>
  modules
    .filter(({ name }) => !checked.some((one) => one.modules.includes(name)))
    .map(({ name, path }) => styled('warn', `${path}: not checked, because ${name} supports ${none(checked)}.`));

const none = ({ length }: readonly CheckedAgent[]): string => (length === 1 ? 'no such agent' : 'none of these agents');

function summary(checked: readonly CheckedAgent[], errors: readonly Conflict[]): Line {
  const agents = checked.length === 1 ? (checked[0]?.name ?? '') : count(checked.length, 'agent');
  if (errors.length > 0) return styled('bad', `${count(errors.length, 'error')} on ${agents}.`);
  return styled('good', `No conflicts on ${agents}.`);
}

const nameOf = ({ id, identities }: DependencyNode): string => id ?? identities.join(' or ');

interface ToCompare {
  readonly name: string;
  readonly files: FileDigests | undefined;
  readonly path: string;
  readonly source: string;
  readonly revision: number | null;
}

async function compare(
  { signal }: Context,
  api: ApiClient,
  { name, path, source, files: beside, revision }: ToCompare,
): Promise<Compared> {
  const stored = await api
    .call('getModule', { params: { name }, query: { revision }, signal })
    .catch((error: unknown) => {
      if (revision === null && isFault(error, 'module_not_found')) return null;
      throw error;
    });
  return compareWith({ name, path, source }, stored, differingFiles(stored?.files, beside));
}

type Graph = readonly DependencyNode[];

/** Renders dependencies as a tree: each resource once, below its last dependency, with its other dependencies named after it. */
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

/** Returns `conf: file-unix /etc/site.conf`. */
const titleOf = ({ id, kinds, identities }: DependencyNode): string =>
  `${id === null ? '' : `${id}: `}${kinds.join('|')} ${identities.join(' or ')}`;

/** Renders dependencies as Graphviz source, with an arrow from each dependency to its dependent. */
export function dependencyDot(name: string, graph: Graph): string {
  const nodes = graph.map((node, at) => `  n${at} [label=${quote(`${at + 1}  ${titleOf(node)}`)}];`);
  const edges = graph.flatMap(({ after }, at) =>
    after.map(({ to, reasons }) => `  n${to} -> n${at} [label=${quote(reasons.join(', '))}];`),
  );
  return [`digraph ${quote(name)} {`, '  rankdir=LR;', '  node [shape=box];', ...nodes, ...edges, '}'].join('\n');
}

const quote = (text: string): string =>
  `"${text.replace(/[\u0000-\u001f\u007f-\u009f]/g, ' ').replace(/[\\"]/g, '\\$&')}"`;
