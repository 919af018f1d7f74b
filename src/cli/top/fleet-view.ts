/** The views of `orch top`. */
import type { Operation } from '../../contract/operations.js';
import type { RolloutRecord } from '../../contract/rollouts.js';
import { auditLine } from '../commands/audit.js';
import { sessionLabel } from '../commands/term.js';
import { agentName, count, formatAge, formatDuration, NONE } from '../format.js';
import {
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
import {
  rolloutFailures,
  rolloutProgress,
  rolloutState,
  rolloutSubject,
  waveFraction,
} from '../runs/rollout-record.js';
import { diskOf, type FleetAgent, type FleetSnapshot, memoryOf, type ProcessorHistory } from './fleet.js';

const BAR = 8;
const TREND = 16;
/** Minimum columns for bars; a narrower terminal shows figures only. */
const ROOM_FOR_BARS = 100;
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
}

export function agentTable({ fleet, history, agents, columns }: AgentTableOptions): TableView {
  const width = columns !== null && columns < ROOM_FOR_BARS ? 0 : BAR;
  return {
    kind: 'table',
    columns: [
      { title: 'AGENT' },
      { title: 'STATUS', whole: true },
      { title: 'CPU', whole: true },
      { title: 'TREND' },
      { title: 'MEMORY', whole: true },
      { title: 'DISK', whole: true },
      { title: 'UPTIME' },
      { title: 'DOING' },
    ],
    rows: agents.map((one) => [
      agentName(one.agent),
      statusOf(one),
      share(one, one.sample?.cpu_usage ?? null, width),
      styled('accent', sparkline(history.of(one.agent.node_id), 100, TREND)),
      share(one, memoryOf(one), width),
      share(one, diskOf(one), width),
      one.sample?.uptime == null ? NONE : formatDuration(one.sample.uptime),
      doing(fleet, one.agent.node_id),
    ]),
    empty: 'No agents. Run on a machine: orch agent connect HOST --orchestrator-key KEY',
  };
}

/** Returns the whole snapshot once, as for a pipe. */
export const snapshotView = (options: AgentTableOptions, now: number): View =>
  stackOf([
    lines(totalsLine(options.fleet)),
    agentTable(options),
    ...sections(options.fleet, now, Number.POSITIVE_INFINITY),
  ]);

/** Returns rollouts, operations, terminals and events, each with its `most` newest lines. */
export function sections(
  { rollouts, operations, terminals, events }: FleetSnapshot,
  now: number,
  most: number,
): readonly View[] {
  const part = (title: string, all: readonly Line[]): readonly View[] =>
    all.length === 0 ? [] : [headed(title, linesOf(all.slice(0, most)))];
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
    ...part('Newest events', events.map(auditLine)),
  ];
}

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

function statusOf({ agent }: FleetAgent): Span {
  if (agent.status !== 'approved') return styled(agent.status === 'pending' ? 'warn' : 'bad', agent.status);
  return agent.connected ? styled('good', 'up') : styled('bad', 'offline');
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
