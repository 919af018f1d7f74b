/** The views of `orch top`. */
import type { AuditEvent } from '../../contract/audit.js';
import type { Operation } from '../../contract/operations.js';
import type { RolloutRecord } from '../../contract/rollouts.js';
import { auditLine } from '../commands/audit.js';
import { agentName, count, formatAge, NONE } from '../format.js';
import {
  type Column,
  headed,
  type Line,
  lines,
  linesOf,
  type Span,
  stackOf,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import { bar, percent, sparkline } from '../render/chart.js';
import { standingSpan } from '../render/standing.js';
import {
  rolloutFailures,
  rolloutProgress,
  rolloutState,
  rolloutSubject,
  waveFraction,
} from '../runs/rollout-record.js';
import { sessionLabel } from '../terminal/session-view.js';
import { diskOf, type FleetAgent, type FleetSnapshot, memoryOf, type ProcessorHistory, type Sort } from './fleet.js';

const BAR = 8;
/** Columns of the trend, in a narrow and a wide terminal. */
const TREND = 8;
const WIDE_TREND = 16;
/** Minimum columns for bars and the wide trend; a narrower terminal shows figures only. */
const ROOM_FOR_BARS = 120;
/** Percentages from which a share is shown as bad, and as a warning. */
const HIGH = 90;
const RAISED = 75;

/** Returns a line with all totals. */
export function totalsLine({ agents, rollouts, operations, terminals }: FleetSnapshot): Line {
  const approved = agents.filter(({ agent }) => agent.status === 'approved');
  const up = approved.filter(({ agent }) => agent.connected).length;
  const pending = agents.filter(({ agent }) => agent.status === 'pending').length;
  const rejected = agents.length - approved.length - pending;
  return [
    styled('strong', count(approved.length, 'agent')),
    ': ',
    styled('good', `${up} up`),
    ...(approved.length > up ? [', ', styled('bad', `${approved.length - up} offline`)] : []),
    ...notInSync(approved),
    ...(pending > 0 ? [', ', styled('warn', `${pending} pending`)] : []),
    ...(rejected > 0 ? [`, ${rejected} rejected`] : []),
    rollouts.length === 0 ? '' : `   ${count(rollouts.length, 'rollout')}`,
    `   ${count(operations.length, 'operation')}`,
    terminals === null ? '' : `   ${count(terminals.length, 'terminal')}`,
  ];
}

/** Returns how many agents an operator has to look at, by their standing. */
function notInSync(approved: readonly FleetAgent[]): readonly Span[] {
  const counted = (['never_applied', 'behind', 'drifted'] as const).map((standing) => ({
    standing,
    agents: approved.filter(({ agent }) => agent.standing === standing).length,
  }));
  return counted.flatMap(({ standing, agents }) =>
    agents === 0 ? [] : [', ', styled('warn', `${agents} ${standing.replace('_', ' ')}`)],
  );
}

interface AgentTableOptions {
  readonly fleet: FleetSnapshot;
  readonly history: ProcessorHistory;
  /** Shown agents in row order. */
  readonly agents: readonly FleetAgent[];
  /** Width of the terminal; null for no limit. */
  readonly columns: number | null;
  /** The order of the agents, which its column shows; null to show none. */
  readonly order: { readonly by: Sort; readonly reversed: boolean } | null;
}

/** A column of agents. */
interface AgentColumn extends Column {
  /** The order that the column shows. */
  readonly sort: Sort | null;
  /** Minimum columns of a terminal that shows it. */
  readonly from: number;
  readonly cell: (one: FleetAgent, shown: ShownFleet) => Span;
}

interface ShownFleet {
  readonly fleet: FleetSnapshot;
  readonly history: ProcessorHistory;
  /** Columns of a bar; 0 for none. */
  readonly bar: number;
  readonly trend: number;
}

const COLUMNS: readonly AgentColumn[] = [
  { title: 'AGENT', sort: 'name', from: 0, cell: ({ agent }) => agentName(agent) },
  { title: 'STATUS', sort: 'status', whole: true, from: 0, cell: statusOf },
  { title: 'STANDING', sort: 'standing', whole: true, from: 60, cell: ({ agent }) => standingSpan(agent) },
  {
    title: 'CPU',
    sort: 'cpu',
    whole: true,
    from: 0,
    cell: (one, { bar }) => share(one, one.sample?.cpu_usage ?? null, bar),
  },
  {
    title: 'TREND',
    sort: null,
    whole: true,
    from: 90,
    cell: ({ agent }, { history, trend }) => {
      const values = history.get(agent.node_id)?.values ?? [];
      return styled('accent', sparkline(values.slice(-trend), 100, trend));
    },
  },
  { title: 'MEMORY', sort: 'memory', whole: true, from: 0, cell: (one, { bar }) => share(one, memoryOf(one), bar) },
  { title: 'DISK', sort: 'disk', whole: true, from: 50, cell: (one, { bar }) => share(one, diskOf(one), bar) },
  {
    title: 'UPTIME',
    sort: 'uptime',
    from: 100,
    cell: ({ sample }) => (sample?.uptime == null ? NONE : formatUptime(sample.uptime)),
  },
  { title: 'DOING', sort: null, from: 75, cell: ({ agent }, { fleet }) => doing(fleet, agent.node_id) },
];

export function agentTable({ fleet, history, agents, columns, order }: AgentTableOptions): TableView {
  const isWide = columns === null || columns >= ROOM_FOR_BARS;
  const shown: ShownFleet = { fleet, history, bar: isWide ? BAR : 0, trend: isWide ? WIDE_TREND : TREND };
  const fitting = COLUMNS.filter(({ from }) => columns === null || columns >= from);
  return {
    kind: 'table',
    columns: fitting.map(({ title, sort, from: _, cell: __, ...column }) => ({
      ...column,
      title: order === null || order.by !== sort ? title : `${title}${order.reversed ? '▲' : '▼'}`,
    })),
    rows: agents.map((one) => fitting.map(({ cell }) => cell(one, shown))),
    empty: 'No agents. Add a machine with: orch enroll create',
  };
}

/** Returns the whole snapshot once, as for a pipe. */
export const snapshotView = (options: AgentTableOptions, now: number): View =>
  stackOf([
    lines(totalsLine(options.fleet)),
    agentTable(options),
    ...sections(options.fleet, now).map(({ title, lines }) => headed(title, linesOf(lines))),
  ]);

/** A part below the agents, newest line first. */
export interface Section {
  readonly title: string;
  readonly lines: readonly Line[];
}

/** Returns rollouts, operations, terminals and events, without empty sections. `isNarrow` shortens the events. */
export function sections(
  { rollouts, operations, terminals, events }: FleetSnapshot,
  now: number,
  isNarrow = false,
): readonly Section[] {
  const part = (title: string, all: readonly Line[]): readonly Section[] =>
    all.length === 0 ? [] : [{ title, lines: all }];
  return [
    ...part('Running rollouts', rollouts.map(rolloutLine)),
    ...part(
      'Running operations',
      operations.map((operation) => operationLine(operation, now)),
    ),
    ...part(
      'Terminals',
      (terminals ?? []).map(
        (session): Line => [
          `${sessionLabel(session)}, `,
          styled('dim', formatAge(session.opened_at, now)),
          session.viewers.length === 0 ? '' : `, watched by ${session.viewers.join(', ')}`,
        ],
      ),
    ),
    ...part('Newest events', events.map(isNarrow ? eventLine : auditLine)),
  ];
}

/** Renders the time of day and the summary of an event. */
const eventLine = ({ timestamp, summary, severity }: AuditEvent): Line => [
  styled('dim', timestamp.slice(11, 19)),
  '  ',
  severity === 'info' || severity === 'notice' ? summary : styled(severity === 'warning' ? 'warn' : 'bad', summary),
];

function rolloutLine(rollout: RolloutRecord): Line {
  const failures = rolloutFailures(rollout);
  const wave = waveFraction(rollout);
  const soak = rollout.wave?.soaking_until == null ? '' : ', soaking';
  return [
    `${rollout.rollout_id}  `,
    rolloutState(rollout),
    `  ${rolloutProgress(rollout)}`,
    failures === 0 ? '' : styled('bad', `, ${failures} failed`),
    wave === '' ? soak : `  wave ${wave}${soak}`,
    `  ${rolloutSubject(rollout)}`,
  ];
}

const operationLine = ({ node_name, node_id, modules, started_at, summary }: Operation, now: number): Line => [
  `${node_name ?? node_id}: ${modules.join(' ')}, ${summary.changed} changed, ${summary.failed} failed, `,
  styled('dim', formatAge(started_at, now)),
];

export function statusOf({ agent }: FleetAgent): Span {
  if (agent.status !== 'approved') return styled(agent.status === 'pending' ? 'warn' : 'bad', agent.status);
  return agent.connected ? styled('good', 'up') : styled('bad', 'offline');
}

/** Formats seconds since a boot: `51 d`, `24 h` or `5 min`. */
export function formatUptime(seconds: number): string {
  if (seconds >= 172_800) return `${Math.floor(seconds / 86_400)} d`;
  return seconds >= 3_600 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 60)} min`;
}

/** Renders a share as bar and figure; dim if the agent is not connected. */
function share({ agent }: FleetAgent, value: number | null, width: number): Span {
  if (value === null) return NONE;
  const figure = percent(value).padStart(6);
  const text = width === 0 ? figure : `${bar(value / 100, width)} ${figure}`;
  if (!agent.connected) return styled('dim', text);
  if (value >= HIGH) return styled('bad', text);
  return value >= RAISED ? styled('warn', text) : text;
}

function doing({ operations, terminals }: FleetSnapshot, nodeId: string): Span {
  const here = (terminals ?? []).filter(({ node_id }) => node_id === nodeId).length;
  const applying = operations.some(({ node_id }) => node_id === nodeId);
  const parts = [...(applying ? ['operation'] : []), ...(here > 0 ? [count(here, 'terminal')] : [])];
  return parts.length === 0 ? NONE : styled('accent', parts.join(', '));
}
