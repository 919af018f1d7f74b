/** `orch state` and `orch explain`: what is applied on an agent, and where a resource comes from. */

import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { Assignment } from '../../contract/assignments.js';
import type { State } from '../../contract/operations.js';
import { Fault } from '../../kernel/fault.js';
import { showClause } from '../../language/clause.js';
import { type Declaration, type DeclaredVariant, declarations } from '../../language/declarations.js';
import type { AgentFacts } from '../../language/evaluate.js';
import type { GivenValues } from '../../language/inputs/choose.js';
import type { Context } from '../context.js';
import { defineCommand, optionalList } from '../define-command.js';
import { agentHandle, formatTime, type TimeCell, timeCells } from '../format.js';
import { unknownSecrets } from '../modules/check-together.js';
import { inputsNamed, inputsView } from '../modules/explain-inputs.js';
import { oneOffFields } from '../modules/one-off-values.js';
import {
  matchingAssignments,
  type StoredModule,
  storedModules,
  type TriedModule,
  triedModules,
  withTried,
} from '../modules/read-modules.js';
import { storedSets, valuesOf } from '../modules/stored-values.js';
import { factsOfAgents } from '../nodes/agent-facts.js';
import { isSelection, readEach, requireSelection, selectAgents, selectionOptions } from '../nodes/choose-agents.js';
import { optionalNodeArgument, optionalNodesArgument } from '../nodes/resolve-node.js';
import { list } from '../options.js';
import {
  type Column,
  fields,
  fieldsOf,
  headed,
  type Line,
  linesOf,
  stack,
  stackOf,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import { trialText } from '../render/standing.js';

const RESOURCE_COLUMNS: readonly Column[] = [
  { title: 'MODULE' },
  { title: 'KIND' },
  { title: 'IDENTITY' },
  { title: 'ORIGIN', spare: 1 },
  { title: 'APPLIED', spare: 2 },
  { title: 'OPERATION', wide: true },
];

/** `orch state`: the believed state of an agent. */
export const showState = defineCommand({
  examples: ['orch state web-01', 'orch state -l role=web'],
  detail: ['Of several agents, -o json gives a list.'],
  access: 'viewer',
  columns: RESOURCE_COLUMNS,
  args: { nodes: optionalNodesArgument },
  options: selectionOptions,
  run: async (context, selection) => {
    requireSelection(selection, 'state');
    const { signal, clock, globals } = context;
    const api = await context.api();
    const agents = await selectAgents(api, selection, context);
    const states = await readEach(agents, async (agent) => ({
      agent,
      state: await api.call('getState', { params: { node_id: agent.node_id }, signal }),
    }));
    const [first, ...others] = states;
    const isOne = first !== undefined && others.length === 0 && !isSelection(selection);
    return {
      body: isOne ? first.state : states.map(({ state }) => state),
      names: states.flatMap(({ state }) => state.applied.map(({ kind, identity }) => `${kind} ${identity}`)),
      view: stackOf(
        states.map(({ agent, state }) => stateView(state, agentHandle(agent), timeCells(clock.now(), globals))),
      ),
    };
  },
});

const trialFields = ({ trial }: State, name: string): readonly (readonly [string, string])[] =>
  trial == null ? [] : [['Standing', `on trial: ${trialText(trial, name)}`]];

const stateView = (state: State, name: string, timeOf: TimeCell): View =>
  stack(
    fields(
      ['Agent', name],
      ['As of operation', state.operation_id ?? 'none'],
      ...oneOffFields(state),
      ...trialFields(state, name),
    ),
    appliedTable(state.applied, timeOf),
    listed('Removed by the next apply', state.pending_removals),
    listed('Wanted, but never applied', state.unapplied),
  );

const appliedTable = (applied: State['applied'], timeOf: TimeCell): TableView => ({
  kind: 'table',
  columns: RESOURCE_COLUMNS,
  rows: applied.map((resource) => [
    resource.module,
    resource.kind,
    resource.identity,
    resource.origin,
    timeOf(resource.applied_at),
    resource.operation_id,
  ]),
  empty: 'Nothing is managed on it.',
});

function listed(title: string, resources: State['unapplied']): View {
  const all = resources.map(({ module, kind, identity }): Line => `  ${kind} ${identity} (${module})`);
  return headed(title, linesOf(all));
}

/** `orch explain`: finds the declaration, assignment and apply behind a resource of an agent. */
export const explainResource = defineCommand({
  examples: [
    'orch explain web-01 /etc/motd',
    'orch explain web-01 file-unix /etc/motd',
    'orch explain -l role=web /etc/motd',
    'orch explain web-01 nginx.workers',
  ],
  detail: [
    'Names the module, the variant and the line that declare a resource, and the assignment and apply that put it',
    'there. Searches the current modules (or the text of a trial) of matching assignments, of the last apply, of all',
    'applied resources, and of -m.',
    'MODULE.INPUT is an input: its value, the document and line that gave it, and what that beat. MODULE is all its',
    'inputs.',
    'With --selector or --status all words are the resource, and agents without it are left out.',
  ],
  access: 'viewer',
  args: {
    node: optionalNodeArgument,
    resource: optionalList('RESOURCE', 'identity, or kind and identity, of a resource; or MODULE.INPUT'),
  },
  options: {
    ...selectionOptions,
    module: list('MODULE', 'search this module too', { short: 'm', completes: 'module' }),
  },
  run: async (context, { node, resource, module, ...selection }) => {
    const isOne = !isSelection(selection);
    const words = isOne || node === undefined ? resource : [node, ...resource];
    if (isOne) requireSelection({ nodes: node === undefined ? [] : [node], ...selection }, 'explain');
    if (words.length === 0) {
      throw new Fault('usage', '"orch explain" needs a resource', { hint: 'such as: orch explain web-01 /etc/motd' });
    }
    const wanted = words.join(' ');
    const api = await context.api();
    const nodes = isOne && node !== undefined ? [node] : [];
    const agents = await selectAgents(api, { nodes, ...selection }, context);
    const explained = await readEach(agents, async (agent) => {
      const resources = await explainOn(context, api, { agent, wanted, module });
      const mayBeInput = resources.length === 0 && words.length === 1;
      return { agent, resources, inputs: mayBeInput ? await inputsNamed(api, agent, wanted, context.signal) : [] };
    });
    const found = explained.filter(({ resources, inputs }) => resources.length + inputs.length > 0);
    const [first] = explained;
    if (found.length === 0 && first !== undefined) throw isOne ? unknown(first.agent, wanted) : unknownToAll(wanted);
    const bodies = found.map(({ agent: { node_id, name }, resources, inputs }) => ({
      node_id,
      name,
      resources,
      inputs,
    }));
    const modules = found.flatMap(({ resources, inputs }) => [
      ...resources.flatMap(({ declared }) => declared.map((place) => place.module)),
      ...inputs.map((input) => input.module),
    ]);
    return {
      body: isOne ? bodies[0] : bodies,
      names: [...new Set(modules)],
      view: stackOf(
        found.flatMap(({ agent, resources, inputs }) => [
          ...(resources.length === 0 ? [] : [explanationView(agentHandle(agent), resources)]),
          ...(inputs.length === 0 ? [] : [inputsView(agentHandle(agent), inputs)]),
        ]),
      ),
    };
  },
});

const unknownToAll = (wanted: string): Fault =>
  new Fault('resource_not_found', `no selected agent has or declares the resource "${wanted}"`, {
    hint: 'see the names of resources: orch state NODE',
  });

interface Wanted {
  readonly agent: Agent;
  readonly wanted: string;
  /** Further modules to search. */
  readonly module: readonly string[];
}

/** Returns what declares and applied a resource on one agent; empty if nothing does. */
async function explainOn(
  { signal }: Context,
  api: ApiClient,
  { agent, wanted, module }: Wanted,
): Promise<readonly Explanation[]> {
  const state = await api.call('getState', { params: { node_id: agent.node_id }, signal });
  const last = await lastApply(api, state, signal);
  const assignments = matchingAssignments(await api.call('listAssignments', { signal }), agent);
  const assigned = assignments.flatMap((assignment) => assignment.modules);
  const names = [...assigned, ...(last?.modules ?? []), ...state.applied.map((one) => one.module), ...module];
  const modules = withTried(await storedModules(api, names, signal), await triedModules(api, agent, signal));
  const values = valuesOf(await storedSets(api, signal), assignments);
  const [facts] = await factsOfAgents(api, [agent], { modules, signal });
  return facts === undefined ? [] : explain({ facts, wanted, state, modules, assignments, values });
}

/** Returns the last apply of an agent; null if there is none. */
async function lastApply(api: ApiClient, { operation_id }: State, signal: AbortSignal) {
  return operation_id === null ? null : api.call('getOperation', { params: { operation_id }, signal });
}

interface Question {
  readonly facts: AgentFacts;
  readonly wanted: string;
  readonly state: State;
  readonly modules: readonly (StoredModule | TriedModule)[];
  readonly assignments: readonly Assignment[];
  readonly values: GivenValues;
}

function explain({ facts, wanted, state, modules, assignments, values }: Question): readonly Explanation[] {
  const compiled = modules.map((module) => module.compiled);
  const { declared } = declarations({ modules: compiled, agent: facts, secret: unknownSecrets, values });
  const isWanted = ({ kind, identity, id }: { kind: string; identity: string; id?: string | null }) =>
    wanted === identity || wanted === `${kind} ${identity}` || (id != null && wanted === id);
  const found = declared.filter(isWanted);
  const applied = state.applied.filter(isWanted);
  const titles = [...found, ...applied].map(({ kind, identity }) => ({ kind, identity }));
  return [...new Map(titles.map((title) => [JSON.stringify(title), title])).values()].map((title) => {
    const same = (other: { kind: string; identity: string }) =>
      other.kind === title.kind && other.identity === title.identity;
    return {
      ...title,
      declared: found.filter(same).map((one) => place(one, modules)),
      assignments: assignmentsOf(assignments, [...found, ...state.applied].filter(same)),
      applied: state.applied.find(same) ?? null,
    };
  });
}

/** Returns the names of the assignments that contain one of the modules. */
const assignmentsOf = (assignments: readonly Assignment[], places: readonly { readonly module: string }[]) =>
  assignments.filter(({ modules }) => places.some(({ module }) => modules.includes(module))).map(({ name }) => name);

function place({ module, path, id, name, variant }: Declaration, modules: Question['modules']) {
  const source = modules.find((other) => other.name === module);
  const { line, column } = source?.locate(path) ?? { line: 1, column: 1 };
  return { module, revision: source?.revision ?? null, path, line, column, id, name, variant };
}

const unknown = (agent: Agent, wanted: string): Fault =>
  new Fault('resource_not_found', `nothing on ${agentHandle(agent)} is known as "${wanted}"`, {
    hint: `see what is managed there: orch state ${agentHandle(agent)}`,
  });

/** Place where a module declares a resource. */
export interface DeclaredPlace {
  readonly module: string;
  /** Null for a text that the agent has on trial. */
  readonly revision: number | null;
  /** JSON pointer in the module. */
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly id: string | null;
  readonly name: string | null;
  readonly variant: DeclaredVariant | null;
}

export interface Explanation {
  readonly kind: string;
  readonly identity: string;
  /** Declarations; several if modules declare the same resource identically. */
  readonly declared: readonly DeclaredPlace[];
  /** Assignments that match the agent now and contain a declaring module. */
  readonly assignments: readonly string[];
  /** Applied resource in the believed state; null if never applied. */
  readonly applied: State['applied'][number] | null;
}

export const explanationView = (agent: string, all: readonly Explanation[]): View =>
  stackOf(
    all.map((one) =>
      headed(
        `${one.kind} ${one.identity} on ${agent}`,
        fieldsOf([...one.declared.flatMap(placeRows), ...stateRows(one)]),
      ),
    ),
  );

type Row = readonly [string, Line];

function placeRows({ module, revision, line, column, id, name, variant }: DeclaredPlace): readonly Row[] {
  const label = id ?? name;
  return [
    ['Declared by', `${module}:${line}:${column}${label === null ? '' : `, resource "${label}"`}`],
    [
      'Revision',
      revision === null
        ? [styled('warn', 'none'), ': the agent has it on trial, and it is not published']
        : `${revision} (orch module show ${module} --revision ${revision})`,
    ],
    ...(variant === null
      ? []
      : [['Variant', `${variant.number} of ${variant.of}: ${showClause(variant.when)}`] as Row]),
  ];
}

function stateRows({ declared, assignments, applied }: Explanation): readonly Row[] {
  const named: readonly Row[] = [['Assigned by', assignments.length === 0 ? NO_ASSIGNMENT : assignments.join(', ')]];
  if (applied === null) return [...named, ['Applied', styled('warn', 'never; the next apply creates or adopts it')]];
  const by: Row = ['Applied', `${formatTime(applied.applied_at)} by operation ${applied.operation_id}`];
  if (declared.length > 0) return [...named, by, ['Origin', ORIGINS[applied.origin]]];
  const fate = applied.origin === 'created' ? 'removes' : 'releases';
  const gone = `no current module declares it for this agent (last: ${applied.module}); the next apply ${fate} it`;
  return [['Declared by', styled('warn', gone)], ...named, by, ['Origin', ORIGINS[applied.origin]]];
}

const NO_ASSIGNMENT = 'no assignment that matches the agent now';

const ORIGINS: Readonly<Record<State['applied'][number]['origin'], string>> = {
  created: 'orch created it, and removes it when it is no longer desired',
  adopted: 'it existed before, and is released when it is no longer desired',
};
