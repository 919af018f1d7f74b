/** `orch impact`: compares the desired states of agents before and after a change of module files. */

import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { Fault } from '../../kernel/fault.js';
import { canonicalJson } from '../../kernel/json.js';
import { clauseMatches } from '../../language/clause.js';
import type { AgentFacts } from '../../language/evaluate.js';
import type { GivenValues } from '../../language/inputs/choose.js';
import { modulesSetBy } from '../../language/inputs/value-set.js';
import { resolveCompiled } from '../../language/resolve.js';
import type { DesiredResource } from '../../resources/desired.js';
import { resourceKey } from '../../resources/resource-key.js';
import type { Context } from '../context.js';
import { argumentList, defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { agentHandle, count } from '../format.js';
import { allAgents } from '../list-pages.js';
import { unknownSecrets } from '../modules/check-together.js';
import {
  matchingAssignments,
  type ReadModule,
  readModules,
  storedModules,
  type TriedModule,
  triedModules,
  withTried,
} from '../modules/read-modules.js';
import { storedSets, valuesOf } from '../modules/stored-values.js';
import { splitPaths, type ValuesFile, withFiles } from '../modules/value-files.js';
import { factsOfAgents } from '../nodes/agent-facts.js';
import { choice } from '../options.js';
import { type Line, lines, linesOf, stackOf, styled, type View } from '../outcome.js';
import { plainText } from '../render/paint.js';
import { textDiff, textDiffLines } from '../render/text-diff.js';

export const command = defineCommand({
  examples: ['orch impact modules/', 'orch impact prod.values.yaml', 'orch impact modules/ --format markdown'],
  detail: [
    'Compares the files with the current revisions, for each approved agent that has one of the modules, applied or',
    'assigned; a value set concerns the modules whose inputs it sets. It compares desired states, uploads nothing,',
    'and needs no agent online; orch plan looks at machines. An agent on trial is compared with the texts of its',
    'trial. --format markdown is for a review.',
    'Ends with 1 if the files cannot be resolved for an agent.',
  ],
  access: 'viewer',
  args: {
    paths: argumentList('PATH', 'files of modules and value sets, or directories whose files are all compared', 'file'),
  },
  options: { format: choice('FORMAT', ['markdown', 'json'], 'print Markdown, or the same as -o json') },
  run: async (context, { paths, format }) => {
    const { modules, values } = splitPaths(paths);
    const changed = modules.length === 0 ? [] : readModules(modules);
    const impacts = await impactOf(context, await context.api(), { modules: changed, values });
    const has_changes = impacts.some(({ changes }) => changes.length > 0);
    const body = { has_changes, agents: impacts };
    const text = format === 'json' ? JSON.stringify(body, null, 2).split('\n') : impactMarkdown(impacts);
    return {
      body,
      names: impacts.filter(({ changes, error }) => changes.length > 0 || error !== null).map(({ name }) => name),
      view: format === undefined ? impactView(impacts) : linesOf(text),
      exitStatus: impacts.some(({ error }) => error !== null) ? EXIT.error : EXIT.done,
    };
  },
});

/** Returns the modules that value sets concern; null for all, because each may use a shared value. */
function concernedModules(files: readonly ValuesFile[]): ReadonlySet<string> | null {
  const entries = files.flatMap(({ parsed }) => parsed.set?.entries ?? []);
  if (entries.some(({ shared }) => Object.keys(shared).length > 0)) return null;
  return modulesSetBy(entries);
}

/** Maximum number of parallel state requests. */
const AT_ONCE = 8;

export interface AgentImpact extends Comparison {
  readonly node_id: string;
  readonly name: string;
  /** Names of the changed modules that the agent has. */
  readonly modules: readonly string[];
  /** True for an agent on trial, which is compared with the texts of its trial. Automatic applies leave it alone. */
  readonly on_trial: boolean;
}

/** Compares the modules of each approved agent that has one of the changed modules, applied or assigned. */
export async function impactOf(
  { signal }: Context,
  api: ApiClient,
  { modules: changed, values }: { readonly modules: readonly ReadModule[]; readonly values: readonly ValuesFile[] },
): Promise<readonly AgentImpact[]> {
  const agents = await allAgents(api, { status: 'approved', signal });
  const assignments = await api.call('listAssignments', { signal });
  const having: {
    readonly agent: Agent;
    readonly names: ReadonlySet<string>;
    readonly tried: readonly TriedModule[];
  }[] = [];
  for (let at = 0; at < agents.length; at += AT_ONCE) {
    const some = agents.slice(at, at + AT_ONCE).map(async (agent) => {
      const state = await api.call('getState', { params: { node_id: agent.node_id }, signal });
      const assigned = matchingAssignments(assignments, agent).flatMap(({ modules }) => modules);
      const tried = await triedModules(api, agent, signal);
      const applied = state.applied.map(({ module }) => module);
      return { agent, names: new Set([...assigned, ...applied, ...tried.map(({ name }) => name)]), tried };
    });
    having.push(...(await Promise.all(some)));
  }
  const concerned = concernedModules(values);
  const isChanged = (name: string) =>
    concerned === null || concerned.has(name) || changed.some((module) => module.name === name);
  const reached = having.filter(({ names }) => [...names].some(isChanged));
  const sets = await storedSets(api, signal);
  const stored = await storedModules(
    api,
    reached.flatMap(({ names }) => [...names]),
    signal,
  );
  const known = await factsOfAgents(
    api,
    reached.map(({ agent }) => agent),
    { modules: [...changed, ...stored, ...reached.flatMap(({ tried }) => tried)], signal, nameOf: agentHandle },
  );
  return reached.flatMap(({ agent, names, tried }, index) => {
    const facts = known[index];
    if (facts === undefined) return [];
    const before = withTried<ReadModule>(
      stored.filter(({ name }) => names.has(name)),
      tried,
    );
    const after = [...names].flatMap(
      (name) => changed.find((module) => module.name === name) ?? before.find((module) => module.name === name) ?? [],
    );
    const own = matchingAssignments(assignments, agent);
    const given = { before: valuesOf(sets, own), after: valuesOf(withFiles(sets, values), own) };
    const { node_id, name } = facts;
    const modules = [...names].filter(isChanged);
    return {
      node_id,
      name,
      modules,
      on_trial: tried.length > 0,
      ...compareDesired(facts, { before, after, values: given }),
    };
  });
}

export interface DesiredChange {
  readonly change: 'added' | 'changed' | 'removed';
  readonly module: string;
  readonly kind: string;
  readonly identity: string;
  /** Fields of a changed resource that differ. */
  readonly fields: readonly string[];
  /** Unified diff of the content; empty if the content is unchanged. */
  readonly diff: string;
}

export interface Comparison {
  readonly changes: readonly DesiredChange[];
  /** Reason why the changed modules cannot be resolved for the agent; null if they can. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Modules and values of an agent before and after a change. */
interface DesiredSides {
  readonly before: readonly ReadModule[];
  readonly after: readonly ReadModule[];
  readonly values: { readonly before: GivenValues; readonly after: GivenValues };
}

/** Resolves both sets of modules for an agent and compares the results. Returns resolution faults as `error`. Secrets count as present. */
export function compareDesired(agent: AgentFacts, { before, after, values }: DesiredSides): Comparison {
  const old = resolve(agent, before, values.before);
  const young = resolve(agent, after, values.after);
  if ('error' in young) return { changes: [], error: young.error };
  return { changes: differences('error' in old ? [] : old.resources, young.resources), error: null };
}

type Resolved =
  | { readonly resources: readonly DesiredResource[] }
  | { readonly error: { readonly code: string; readonly message: string } };

function resolve(agent: AgentFacts, modules: readonly ReadModule[], values: GivenValues): Resolved {
  const compiled = modules.map((module) => module.compiled);
  const supporting = compiled.filter(({ supports }) => supports.some((clause) => clauseMatches(clause, agent)));
  try {
    return resolveCompiled({ modules: supporting, agent, secret: unknownSecrets, values });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { error: { code: error.code, message: error.message } };
  }
}

function differences(old: readonly DesiredResource[], young: readonly DesiredResource[]): readonly DesiredChange[] {
  const before = new Map(old.map((resource) => [resourceKey(resource), resource]));
  const after = new Set(young.map(resourceKey));
  return [
    ...young.flatMap((resource) => changeOf(before.get(resourceKey(resource)), resource) ?? []),
    ...old.filter((resource) => !after.has(resourceKey(resource))).map((one) => named('removed', one, [], '')),
  ];
}

function changeOf(before: DesiredResource | undefined, after: DesiredResource): DesiredChange | null {
  if (before === undefined)
    return named('added', after, [], contentDiff(after.identity, undefined, after.body.content));
  const names = [...new Set([...Object.keys(before.body), ...Object.keys(after.body)])];
  const fields = names.filter((name) => canonicalJson(before.body[name]) !== canonicalJson(after.body[name]));
  if (fields.length === 0 && before.kind === after.kind) return null;
  return named('changed', after, fields, contentDiff(after.identity, before.body.content, after.body.content));
}

const named = (
  change: DesiredChange['change'],
  { module, kind, identity }: DesiredResource,
  fields: readonly string[],
  diff: string,
): DesiredChange => ({ change, module, kind, identity, fields, diff });

function contentDiff(identity: string, before: unknown, after: unknown): string {
  const side = (text: unknown, prefix: string) =>
    typeof text === 'string' ? { label: prefix + identity, text } : { label: '/dev/null', text: '' };
  return textDiff(side(before, 'a'), side(after, 'b'));
}

/** Agents with the same change. */
interface Group {
  readonly names: readonly string[];
  readonly impact: AgentImpact;
}

const SIGNS = { added: ['+', 'good'], changed: ['~', 'warn'], removed: ['-', 'bad'] } as const;

export function impactView(impacts: readonly AgentImpact[]): View {
  const parts = groupsOf(impacts).map(({ names, impact }) =>
    linesOf([
      styled('strong', namesOf(names)),
      ...(impact.error ? [] : impact.changes.flatMap(changeLines)),
      ...errorLine(impact),
    ]),
  );
  return stackOf([...parts, lines(totals(impacts))]);
}

function changeLines({ change, kind, identity, fields, diff }: DesiredChange): readonly Line[] {
  const [sign, style] = SIGNS[change];
  const what = fields.length === 0 ? '' : `  ${fields.join(', ')}`;
  const body = textDiffLines(diff).map((line): Line => ['      ', ...(Array.isArray(line) ? line : [line])]);
  return [[styled(style, `  ${sign} ${kind} ${identity}`), styled('dim', what)], ...body];
}

const errorLine = ({ error }: AgentImpact): readonly Line[] =>
  error === null ? [] : [[styled('bad', '  error: '), error.message]];

/** Groups agents by change. Leaves out agents without changes. */
function groupsOf(impacts: readonly AgentImpact[]): readonly Group[] {
  const groups = new Map<string, AgentImpact[]>();
  for (const impact of impacts) {
    if (impact.error === null && impact.changes.length === 0) continue;
    const key = JSON.stringify([impact.changes, impact.error?.code]);
    groups.set(key, [...(groups.get(key) ?? []), impact]);
  }
  return [...groups.values()].flatMap(([impact, ...others]) =>
    impact === undefined ? [] : [{ impact, names: [impact, ...others].map(labelOf) }],
  );
}

const labelOf = ({ name, on_trial }: AgentImpact): string => (on_trial ? `${name} (on trial)` : name);

/** Maximum number of listed names; the rest is counted. */
const NAMED = 10;

function namesOf(names: readonly string[]): string {
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : '';
  return `${names.slice(0, NAMED).join(', ')}${more}`;
}

function totals(impacts: readonly AgentImpact[]): string {
  const failed = impacts.filter(({ error }) => error !== null).length;
  const changing = impacts.filter(({ changes }) => changes.length > 0).length;
  const same = impacts.length - failed - changing;
  const all = [
    `${changing} to change`,
    ...(same > 0 ? [`${same} the same`] : []),
    ...(failed > 0 ? [`${failed} refused`] : []),
  ];
  return impacts.length === 0 ? 'No agent has these modules.' : `${count(impacts.length, 'agent')}: ${all.join(', ')}.`;
}

/** Returns the impact as Markdown lines for a review comment. */
export function impactMarkdown(impacts: readonly AgentImpact[]): readonly string[] {
  const sections = groupsOf(impacts).flatMap(({ names, impact }) => [
    '',
    `### ${plainMarkdown(namesOf(names))}`,
    '',
    ...(impact.error === null
      ? impact.changes.flatMap(markdownChange)
      : [`**Refused:** ${plainMarkdown(impact.error.message)}`]),
  ]);
  return ['## Impact on the fleet', '', plainMarkdown(totals(impacts)), ...sections];
}

function markdownChange({ change, kind, identity, fields, diff }: DesiredChange): readonly string[] {
  const what = fields.length === 0 ? '' : ` (${fields.join(', ')})`;
  const head = `- **${change}** ${plainMarkdown(`${kind} ${identity}${what}`)}`;
  if (diff === '') return [head];
  const body = diff
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => `  ${plainText(line)}`);
  const fence = fenceFor(diff);
  return [head, `  ${fence}diff`, ...body, `  ${fence}`];
}

/** Returns a fence longer than any run of backticks in the text. */
const fenceFor = (text: string): string =>
  '`'.repeat([...text.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length + 1), 3));

/** Escapes text for Markdown. */
const plainMarkdown = (text: string): string => text.replace(/[\\`*_[\]<>#|!]/g, '\\$&').replaceAll('\n', ' ');
