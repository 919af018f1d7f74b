/** One agent as `orch top` shows it: its measurements, standing, drift, operations, modules and attributes. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { Assignment } from '../../contract/assignments.js';
import type { Operation, State } from '../../contract/operations.js';
import type { DriftDetail } from '../../contract/runs.js';
import type { TerminalSession } from '../../contract/terminal.js';
import type { MetricsSample } from '../../kernel/schema.js';
import { matches, scopedSelector } from '../../language/selector.js';
import { count, formatAge, formatDuration, formatTags, formatTime, textOrNone } from '../format.js';
import {
  type FieldsView,
  fieldsOf,
  headed,
  type Line,
  lines,
  linesOf,
  type Span,
  stackOf,
  styled,
  type View,
} from '../outcome.js';
import { percent, percentOf, sparkline } from '../render/chart.js';
import { planLines } from '../render/plan-lines.js';
import { standingFields } from '../render/standing.js';
import type { FleetSnapshot } from './fleet.js';
import { formatUptime, statusOf } from './fleet-view.js';

export interface AgentDetail {
  readonly agent: Agent;
  /** Newest measurements, oldest first. */
  readonly samples: readonly MetricsSample[];
  /** Newest operations, newest first. */
  readonly operations: readonly Operation[];
  readonly state: State;
  /** Newest drift check; null if there was none. */
  readonly drift: DriftDetail | null;
  /** Assignments whose selector matches. */
  readonly assignments: readonly Assignment[];
}

const OPERATIONS = 10;
const SAMPLES = 240;

export async function readAgentDetail(api: ApiClient, nodeId: string, signal: AbortSignal): Promise<AgentDetail> {
  const params = { node_id: nodeId };
  const [agent, metrics, operations, state, drift, assignments] = await Promise.all([
    api.call('getAgent', { params, signal }),
    api.call('getMetrics', { params, query: { limit: SAMPLES }, signal }),
    api.call('listAgentOperations', { params, query: { limit: OPERATIONS }, signal }),
    api.call('getState', { params, signal }),
    api.call('getLatestDrift', { params, signal }),
    api.call('listAssignments', { signal }),
  ]);
  return {
    agent,
    samples: metrics?.samples ?? [],
    operations: operations.operations,
    state,
    drift,
    assignments: assignments.filter((assignment) => isMatched(assignment, agent)),
  };
}

/** Returns false for a selector that this version cannot read. */
function isMatched({ selector, scope }: Assignment, agent: Agent): boolean {
  try {
    return agent.status === 'approved' && matches(scopedSelector(selector, scope), agent);
  } catch {
    return false;
  }
}

interface AgentViewOptions {
  readonly detail: AgentDetail;
  readonly fleet: FleetSnapshot;
  /** Unix milliseconds. */
  readonly now: number;
  readonly columns: number;
}

export function agentView({ detail, fleet, now, columns }: AgentViewOptions): View {
  const { agent, operations } = detail;
  const terminals = (fleet.terminals ?? []).filter(({ node_id }) => node_id === agent.node_id);
  const attributes = Object.entries(agent.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
  return stackOf([
    measurements(detail, columns),
    fieldsOf([
      ['Status', statusLine(agent, now)],
      ...standingFields(agent),
      ['Tags', textOrNone(formatTags(agent.tags))],
    ]),
    headed('Drift', linesOf(driftLines(detail, now))),
    headed(
      'Operations',
      operations.length === 0
        ? lines(styled('dim', '  none'))
        : linesOf(operations.flatMap((operation) => operationLines(operation, now))),
    ),
    headed('Modules', linesOf(moduleLines(detail))),
    headed('Terminals', linesOf(terminals.map((session) => terminalLine(session, now)))),
    headed('Attributes', fieldsOf(attributes.map(([key, value]) => [`  ${key}`, value] as const))),
  ]);
}

function statusLine(agent: Agent, now: number): Line {
  const { connected, connected_at, updated_at, status, agent_version, initial_ip } = agent;
  const since = status === 'approved' ? ` ${formatAge(connected ? connected_at : updated_at, now)}` : '';
  return [statusOf({ agent, sample: null }), `${since}, version ${agent_version}, address ${initial_ip}`];
}

/** Columns of a line of measurements beside its sparkline. */
const BESIDE = 30;
const LONGEST = 80;

function measurements({ samples }: AgentDetail, columns: number): FieldsView {
  const width = Math.max(8, Math.min(LONGEST, columns - BESIDE));
  const last = samples.at(-1);
  const row = (share: (sample: MetricsSample) => number | null): Line => {
    const newest = last === undefined ? null : share(last);
    const most = Math.max(0, ...samples.map((sample) => share(sample) ?? 0));
    if (newest === null) return styled('dim', 'not measured');
    return [
      styled('accent', sparkline(samples.map(share), 100, width)),
      ` ${percent(newest)}`,
      styled('dim', `, most ${percent(most)}`),
    ];
  };
  const first = samples[0];
  return fieldsOf([
    ['CPU', row(({ cpu_usage: cpu }) => cpu)],
    ['Memory', row(({ memory_used: used, memory_total: total }) => percentOf(used, total))],
    ['Disk', row(({ disk_used: used, disk_total: total }) => percentOf(used, total))],
    ['Uptime', last?.uptime == null ? styled('dim', 'not measured') : formatUptime(last.uptime)],
    ...(first === undefined || last === undefined
      ? []
      : [
          ['Measured', styled('dim', `${formatTime(first.collected_at)} to ${formatTime(last.collected_at)}`)] as const,
        ]),
  ]);
}

const DRIFT: Readonly<Record<DriftDetail['status'], Span>> = {
  drifted: styled('bad', 'drifted'),
  in_sync: styled('good', 'in sync'),
  failed: styled('bad', 'the check failed'),
  cancelled: styled('warn', 'the check was cancelled'),
};

function driftLines({ drift, operations }: AgentDetail, now: number): readonly Line[] {
  if (drift === null) return [styled('dim', '  not checked yet')];
  const { status, finished_at, started_at, summary, resources, error } = drift;
  const differ = status === 'drifted' ? `, ${summary.pending} of ${count(summary.total, 'resource')} differ` : '';
  const checked = finished_at ?? started_at;
  const applied = operations.some(({ status, finished_at: end }) => status === 'succeeded' && (end ?? 0) > checked);
  return [
    ['  ', DRIFT[status], `${differ}, checked ${formatAge(checked, now)}`],
    ...(status === 'drifted' && applied
      ? [styled('dim', '  before the newest apply, which may have repaired it')]
      : []),
    ...(error === null ? [] : [['  ', styled('bad', error.message)]]),
    ...planLines(resources, { verbose: false, details: false }),
  ];
}

const STATUSES: Readonly<Record<Operation['status'], Parameters<typeof styled>[0]>> = {
  queued: 'warn',
  running: 'accent',
  succeeded: 'good',
  failed: 'bad',
  interrupted: 'bad',
  cancelled: 'warn',
  rolled_back: 'warn',
};

function operationLines(operation: Operation, now: number): readonly Line[] {
  const { operation_id: id, status, summary, modules, started_at, finished_at, error } = operation;
  const took = finished_at === null ? '' : `  in ${formatDuration(Math.max(0, finished_at - started_at))}`;
  const line: Line = [
    '  ',
    styled(STATUSES[status], status.replace('_', ' ').padEnd(11)),
    ` ${formatAge(started_at, now).padEnd(10)}  ${modules.join(' ')}: ${summaryWords(summary)}${took}  `,
    styled('dim', id),
  ];
  return error === null ? [line] : [line, ['    ', styled('bad', error.message)]];
}

function summaryWords({ changed, failed, skipped, unchanged }: Operation['summary']): string {
  const parts = [
    ...(changed > 0 ? [`${changed} changed`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ];
  return parts.length === 0 ? `${unchanged} unchanged` : parts.join(', ');
}

/** Returns the modules with the number of their resources, and the assignments that give them. */
function moduleLines({ state, assignments }: AgentDetail): readonly Line[] {
  const names = new Set([...state.applied, ...state.unapplied].map(({ module }) => module));
  const assigned = assignments.flatMap(({ modules }) => modules);
  const all = [...new Set([...names, ...assigned])].sort();
  const width = all.reduce((most, name) => Math.max(most, name.length), 0);
  const of = (list: readonly { readonly module: string }[], name: string) =>
    list.filter(({ module }) => module === name).length;
  const modules = all.map((name): Line => {
    const by = assignments.filter(({ modules }) => modules.includes(name)).map((one) => `${one.name} (${one.mode})`);
    const missing = of(state.unapplied, name);
    return [
      `  ${name.padEnd(width)}  ${count(of(state.applied, name), 'resource')} applied`,
      missing === 0 ? '' : styled('bad', `, ${missing} not`),
      by.length === 0 ? '' : styled('dim', `  assigned by ${by.join(', ')}`),
    ];
  });
  const removals = state.pending_removals.length;
  const stopped = assignments.flatMap(({ name, stopped_reason: reason }) =>
    reason === null ? [] : [[styled('bad', `  automatic applies of ${name} have stopped`), `: ${reason}`]],
  );
  return [
    ...(modules.length === 0 ? [styled('dim', '  none')] : modules),
    ...(removals === 0 ? [] : [styled('warn', `  ${count(removals, 'resource')} to remove`)]),
    ...stopped,
  ];
}

const terminalLine = (
  { operator, kind, command, shell, opened_at, session_id }: TerminalSession,
  now: number,
): Line => [
  `  ${operator}, ${kind === 'shell' ? (shell ?? 'a shell') : (command ?? []).join(' ')}, ${formatAge(opened_at, now)}  `,
  styled('dim', session_id),
];
