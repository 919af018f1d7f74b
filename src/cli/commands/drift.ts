/** The commands of `orch drift`. */

import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import { ROLLOUT_CONCURRENCY } from '../../contract/rollout-concurrency.js';
import { DRIFT_STATUSES, type DriftDetail, type DriftRecord } from '../../contract/runs.js';
import { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { agentHandle, count, formatTime, type TimeCell, timeCells } from '../format.js';
import { allAgents, readList } from '../list-pages.js';
import { localChoice, localOptions } from '../local/local-options.js';
import { matchingAssignments } from '../modules/read-modules.js';
import {
  chooseAgents,
  filterOf,
  fleetFlags,
  fleetOptions,
  listSelectorOption,
  refuseBoth,
  requireOneChoice,
} from '../nodes/choose-agents.js';
import { nodeArgument, optionalNodesArgument, resolveNode } from '../nodes/resolve-node.js';
import { visitAgents } from '../nodes/visit-agents.js';
import { choice, flag, integer, list, text } from '../options.js';
import {
  type Column,
  fieldsOf,
  lines,
  linesOf,
  type Outcome,
  type Span,
  stack,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import { type NameOfOperator, nameOfNode, operatorNames } from '../record-names.js';
import { countLines, planLines } from '../render/plan-lines.js';
import { type AgentRun, hasResult, standingOf } from '../runs/agent-run.js';
import { createRunProgress } from '../runs/follow-run.js';
import { runOutcome } from '../runs/run-view.js';
import { waitOption, waitSecsOf, whenFree } from '../runs/when-free.js';
import { watchList, watchOption } from '../watch-list.js';

/** `orch drift`. */
export const checkDrift = defineCommand({
  examples: [
    'orch drift web-01',
    'orch drift web-01 web-02 --detailed-exitcode',
    'orch drift --assignment web',
    'orch drift -l "*"',
    'orch drift --local',
  ],
  detail: [
    'It repairs nothing; orch apply repairs.',
    '--local compares this machine with the last orch apply --local.',
  ],
  access: 'operator',
  args: { nodes: optionalNodesArgument },
  options: {
    ...fleetOptions,
    concurrency: integer('N', `most agents at a time [${ROLLOUT_CONCURRENCY.standard}]`, 1),
    ...localOptions,
    values: list('FILE', 'with --local: a value set, as of the apply', { completes: 'file' }),
    set: list('MODULE:INPUT=VALUE', 'with --local: the value of an input, as of the apply'),
    file: list('FILE', 'with --local: module files, to compare resources with secrets', {
      short: 'f',
      completes: 'file',
    }),
    wait: waitOption,
    detailedExitcode: flag('end with 2 if resources have drifted'),
  },
  run: async (context, { detailedExitcode, concurrency, wait, ...choice }) => {
    const waitSecs = waitSecsOf(wait);
    const others = { '--wait': waitSecs !== null, ...fleetFlags(choice) };
    const here = localChoice({ ...choice, others, isOnlyLocal: true });
    if (here !== null) {
      return (await import('../local/run-local.js')).driftLocal(context, here, detailedExitcode);
    }
    requireOneChoice(choice, 'drift');
    const { globals } = context;
    const api = await context.api();
    const agents = await chooseAgents(api, choice, context);
    noteBehind(context, agents);
    const fleet = choice.nodes.length === 0;
    const runs = await checkAgents(context, api, {
      agents,
      concurrency: concurrency ?? ROLLOUT_CONCURRENCY.standard,
      fleet,
      waitSecs,
    });
    // The result of the check matters more than this note.
    await noteRepairs(context, api, { agents, runs }).catch(() => undefined);
    return runOutcome(runs, { kind: 'drift', detailed: detailedExitcode, verbose: globals.verbose, fleet });
  },
});

interface Checked {
  readonly agents: readonly Agent[];
  readonly runs: readonly AgentRun[];
}

/** Notes the agents that the orchestrator repairs: assignments in mode enforce cover all of their drifted modules. */
async function noteRepairs(context: Context, api: ApiClient, { agents, runs }: Checked): Promise<void> {
  const drifted = runs.filter((run) => hasResult(run) && run.result.status === 'drifted');
  if (drifted.length === 0) return;
  const assignments = await api.call('listAssignments', { signal: context.signal });
  const enforced = assignments.filter(({ mode, stopped_reason: stopped }) => mode === 'enforce' && stopped === null);
  const repaired = drifted.filter((run) => {
    const agent = agents.find(({ node_id }) => node_id === run.agent.node_id);
    if (!hasResult(run) || agent === undefined || agent.automation_stopped !== null) return false;
    const covered = matchingAssignments(enforced, agent).flatMap(({ modules }) => modules);
    const differing = run.result.resources.filter(({ status }) => status === 'pending');
    return differing.every(({ module }) => covered.includes(module));
  });
  const [first] = repaired;
  if (first === undefined) return;
  const [who, look] =
    repaired.length === 1
      ? [agentHandle(first.agent), `orch agents show ${agentHandle(first.agent)}`]
      : [count(repaired.length, 'agent'), 'orch agents'];
  context.note(`the orchestrator is set to repair the drift of ${who} (mode enforce); to check: ${look}`);
}

/** Notes agents that differ from their modules, which a comparison with the last apply does not show. */
function noteBehind(context: Context, agents: readonly Agent[]): void {
  const behind = agents.filter(({ standing }) => standing === 'behind' || standing === 'never_applied');
  for (const { standing, ...agent } of behind.slice(0, NOTED)) {
    const what = standing === 'behind' ? 'is behind what its modules give' : 'was never applied';
    context.note(`${agentHandle(agent)} ${what}: orch plan ${agentHandle(agent)}`);
  }
  const more = behind.length - NOTED;
  if (more > 0) context.note(`${count(more, 'more agent')} are behind or were never applied: orch agents`);
}

/** Agents that are noted by name. */
const NOTED = 3;

interface Checks {
  readonly agents: readonly Agent[];
  readonly concurrency: number;
  /** True if an assignment or selector chose the agents: faults then stay with their agent, even for a single one. */
  readonly fleet: boolean;
  /** Seconds to wait for a busy agent; null to fail at once. */
  readonly waitSecs: number | null;
}

/** Checks agents. Returns faults with their agent; throws those of a single named agent and those that concern all agents. */
function checkAgents(
  context: Context,
  api: ApiClient,
  { agents, concurrency, fleet, waitSecs }: Checks,
): Promise<readonly AgentRun[]> {
  const { signal } = context;
  const progress = createRunProgress(context, 'drift', agents.length);
  return visitAgents<AgentRun>({
    agents,
    concurrency,
    isSingle: agents.length === 1 && !fleet,
    fatal: ['unreachable'],
    visit: async (agent) => {
      const check = () => api.call('checkDrift', { params: { node_id: agent.node_id }, signal });
      return { agent, result: await whenFree(context, api, { agent, secs: waitSecs }, check) };
    },
    failed: (agent, fault) => ({ agent, fault }),
    skipped: (agent, why) => ({ agent, fault: new Fault('cancelled', why) }),
    statusOf: standingOf,
    onResult: (run) => progress.finished(run),
  });
}

const DRIFT_COLUMNS: readonly Column[] = [
  { title: 'DRIFT ID', whole: true },
  { title: 'AGENT' },
  { title: 'STATUS', whole: true },
  { title: 'DIFFERENT', right: true },
  { title: 'OF', right: true, spare: 2 },
  { title: 'CHECKED' },
  { title: 'TRIGGER', spare: 1 },
  { title: 'COMPARED WITH', wide: true },
];

/** `orch drift list`. */
export const listDrift = defineCommand({
  examples: ['orch drift list --status drifted -l role=web', 'orch drift list --agent web-01 --watch'],
  access: 'viewer',
  columns: DRIFT_COLUMNS,
  options: {
    agent: text('NODE', 'filter by agent', { completes: 'node' }),
    selector: listSelectorOption,
    status: choice('STATUS', DRIFT_STATUSES, 'filter by status'),
    limit: integer('N', 'maximum number, newest first [50]', 1),
    watch: watchOption,
  },
  run: async (context, { agent, selector, status, limit, watch }) => {
    refuseBoth('--agent', agent, selector);
    const api = await context.api();
    const one = agent === undefined ? null : await resolveNode(api, agent, context);
    const read = async (reading: Context): Promise<Outcome> => {
      const { signal } = reading;
      const { items: records } = await readList(reading, {
        limit,
        read: (page) => {
          const query = { status: status ?? null, ...page };
          return one
            ? api.callWithHeaders('listAgentDrift', { params: { node_id: one.node_id }, query, signal })
            : api.callWithHeaders('listDrift', { query: { ...query, ...filterOf(selector) }, signal });
        },
        itemsOf: (body) => body.records,
      });
      const names = await nameTable(reading, api, one === null);
      return {
        body: { records },
        records,
        names: records.map(({ drift_id }) => drift_id),
        view: driftTable(records, {
          nameOf: (id) => (one ? agentHandle(one) : (names.get(id) ?? id)),
          timeOf: timeCells(reading.clock.now(), reading.globals),
          filtered: [agent, selector, status].some((given) => given !== undefined),
        }),
      };
    };
    return watch ? watchList(context, api, { read, category: 'drift' }) : read(context);
  },
});

/** `orch drift show`. */
export const showDrift = defineCommand({
  examples: ['orch drift show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'viewer',
  args: { id: argument('ID', 'drift ID, as "orch drift list" shows it', 'drift') },
  run: async (context, { id }) => {
    const api = await context.api();
    const record = await api.call('getDrift', { params: { drift_id: id }, signal: context.signal });
    const name = await nameOfNode(context, api, record.node_id);
    const nameOf = await operatorNames(context, api);
    return {
      body: record,
      names: [record.drift_id],
      view: driftDetails(record, { name, nameOf, verbose: context.globals.verbose }),
    };
  },
});

/** `orch drift latest`. */
export const showLatestDrift = defineCommand({
  examples: ['orch drift latest web-01'],
  access: 'viewer',
  args: { node: nodeArgument },
  run: async (context, { node }) => {
    const { signal, globals } = context;
    const api = await context.api();
    const agent = await resolveNode(api, node, { signal });
    const name = agentHandle(agent);
    const record = await api.call('getLatestDrift', { params: { node_id: agent.node_id }, signal });
    if (record === null) {
      return { body: null, view: lines(`${name} has never been checked. Do it with: orch drift ${name}`) };
    }
    const nameOf = await operatorNames(context, api);
    return {
      body: record,
      names: [record.drift_id],
      view: driftDetails(record, { name, nameOf, verbose: globals.verbose }),
    };
  },
});

/** Returns agent names by node ID; empty if the output is for programs. */
async function nameTable({ globals, signal }: Context, api: ApiClient, wanted: boolean): Promise<Map<string, string>> {
  const forPeople = globals.output === 'table' || globals.output === 'wide';
  const agents = wanted && forPeople ? await allAgents(api, { signal }) : [];
  return new Map(agents.map((agent) => [agent.node_id, agentHandle(agent)]));
}

/** Options of the table of drift records. */
export interface DriftTableOptions {
  /** Returns an agent's name, or its ID if unknown. */
  nameOf(nodeId: string): string;
  readonly timeOf: TimeCell;
  /** True if the list was filtered, so that other records may exist. */
  readonly filtered: boolean;
}

export const driftTable = (
  records: readonly DriftRecord[],
  { nameOf, timeOf, filtered }: DriftTableOptions,
): TableView => ({
  kind: 'table',
  columns: DRIFT_COLUMNS,
  rows: records.map((record) => [
    record.drift_id,
    nameOf(record.node_id),
    driftStatus(record.status),
    // Orchestrators before snoozes count none.
    String(record.summary.pending - (record.snoozed ?? 0) - (record.accepted ?? 0)),
    String(record.summary.total),
    timeOf(record.finished_at),
    record.trigger,
    record.operation_id,
  ]),
  empty: filtered
    ? 'No matching drift records. List the newest with: orch drift list'
    : 'No drift records. Check an agent with: orch drift NODE',
});

export interface DriftDetailOptions {
  /** Name of the agent. */
  readonly name: string;
  readonly nameOf: NameOfOperator;
  readonly verbose: boolean;
}

export const driftDetails = (record: DriftDetail, { name, nameOf, verbose }: DriftDetailOptions): View =>
  stack(
    fieldsOf([
      ['Drift', record.drift_id],
      ['Agent', name],
      ['Status', driftStatus(record.status)],
      [
        'Checked',
        `${formatTime(record.finished_at)} (${record.trigger}${record.requested_by ? ` by ${nameOf(record.requested_by)}` : ''})`,
      ],
      ['Compared with', record.operation_id],
      ...(record.error === null ? [] : [['Error', styled('bad', record.error.message)] as const]),
    ]),
    linesOf([...planLines(record.resources, { verbose, details: true }), ...countLines('drift', record)]),
  );

function driftStatus(status: DriftRecord['status']): Span {
  if (status === 'in_sync') return styled('good', 'in sync');
  return styled(status === 'cancelled' ? 'dim' : 'bad', status);
}
