/** The views of stored rollouts. */
import type { RolloutAgent, RolloutRecord } from '../../contract/rollouts.js';
import { agentName, count, formatDuration, formatTime, type TimeCell, textOrNone, tookCell } from '../format.js';
import { oneOffFields } from '../modules/one-off-values.js';
import {
  type Column,
  fieldsOf,
  type Line,
  linesOf,
  proseOf,
  type Span,
  stackOf,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import type { NameOfOperator } from '../record-names.js';
import type { RolloutDetail } from './follow-rollout.js';
import {
  countsLine,
  nextStepLines,
  rolloutFailures,
  rolloutProgress,
  rolloutState,
  rolloutSubject,
  valueChangeLines,
  waveFraction,
} from './rollout-record.js';

export const ROLLOUT_COLUMNS: readonly Column[] = [
  { title: 'ROLLOUT ID', whole: true },
  { title: 'STATE', whole: true },
  { title: 'WHAT' },
  { title: 'DONE', right: true, whole: true },
  { title: 'WAVE', whole: true, spare: 1 },
  { title: 'STARTED', whole: true, spare: 2 },
  { title: 'FAILED', right: true, wide: true },
  { title: 'MODULES', wide: true },
  { title: 'TOOK', wide: true },
  { title: 'BY', wide: true },
  { title: 'REASON', wide: true },
];

interface RolloutTableOptions {
  readonly nameOf: NameOfOperator;
  readonly timeOf: TimeCell;
  /** True if the list was filtered, so that other rollouts may exist. */
  readonly filtered: boolean;
}

export const rolloutTable = (
  rollouts: readonly RolloutRecord[],
  { nameOf, timeOf, filtered }: RolloutTableOptions,
): TableView => ({
  kind: 'table',
  columns: ROLLOUT_COLUMNS,
  rows: rollouts.map((rollout) => [
    rollout.rollout_id,
    rolloutState(rollout),
    rolloutSubject(rollout),
    rolloutProgress(rollout),
    textOrNone(waveFraction(rollout)),
    timeOf(rollout.started_at),
    String(rolloutFailures(rollout)),
    textOrNone(rollout.modules.join(' ')),
    tookCell(rollout),
    nameOf(rollout.requested_by),
    textOrNone(rollout.reason),
  ]),
  empty: filtered
    ? 'No matching rollouts. List the newest with: orch rollouts'
    : 'No rollouts. Begin one with: orch apply --selector SELECTOR -m MODULE',
});

interface RolloutDetailsOptions {
  readonly nameOf: NameOfOperator;
  /** True to name every agent. */
  readonly verbose: boolean;
}

/** Returns the view of one rollout: the agents that need attention first, and the commands that may follow last. */
export function rolloutDetails(rollout: RolloutDetail, { nameOf, verbose }: RolloutDetailsOptions): View {
  const { assignment, selector, modules, wave, reason } = rollout;
  return stackOf([
    fieldsOf([
      ['Rollout', rollout.rollout_id],
      ['State', rolloutState(rollout)],
      ...(reason === null ? [] : [['Reason', reason] as const]),
      ...(assignment === null ? [] : [['Assignment', assignment] as const]),
      ...(selector === null ? [] : [['Selector', selector] as const]),
      [
        'Modules',
        modules.length === 0 && assignment !== null ? 'those of the assignments' : textOrNone(modules.join(' ')),
      ],
      ...oneOffFields(rollout),
      ['Requested by', nameOf(rollout.requested_by)],
      ['Started', formatTime(rollout.started_at)],
      ['Finished', textOrNone(formatTime(rollout.finished_at))],
      ...paceFields(rollout),
      ...(wave === null || (wave.of < 2 && wave.soaking_until === null) ? [] : [['Wave', waveWords(wave)] as const]),
      ['Agents', countsLine(rollout)],
    ]),
    ...GROUPS.map(({ state, head }) => groupView(rollout, { state, head, verbose })),
    proseOf(valueChangeLines(rollout)),
    proseOf(nextStepLines(rollout)),
  ]);
}

function waveWords({ number, of, soaking_until }: NonNullable<RolloutRecord['wave']>): string {
  const soak = soaking_until === null ? '' : `, soaking until ${formatTime(soaking_until)}`;
  return `${number} of ${of}${soak}`;
}

/** Returns the pace in short fields, so that each fits a terminal. */
function paceFields({ pace }: RolloutRecord): readonly (readonly [string, string])[] {
  const { canary, waves, soak_secs, concurrency, max_failures, on_failure, skip_offline, expires_at } = pace;
  const isBound = canary > 0 || waves.length > 1 || max_failures !== null;
  const failures = max_failures === null ? '' : `, at most ${count(max_failures, 'failure')}`;
  const ofCanaries = canary > 0 ? ', canaries first' : '';
  const soak = soak_secs > 0 ? `, each with a soak of ${formatDuration(soak_secs)}` : '';
  return [
    ['Pace', `at most ${concurrency} at a time${failures}`],
    ...(waves.length > 1 ? [['Waves', `${waves.join(', ')}${ofCanaries}${soak}`] as const] : []),
    ...(isBound ? [['On failure', on_failure] as const] : []),
    ...(skip_offline ? [['If offline', 'skipped'] as const] : []),
    ...(expires_at === null ? [] : [['If offline', `awaited until ${formatTime(expires_at)}`] as const]),
  ];
}

type AgentState = RolloutAgent['state'];

/** States in the order of the view. */
const GROUPS: readonly { readonly state: AgentState; readonly head: Span }[] = [
  { state: 'failed', head: styled('bad', 'Failed') },
  { state: 'unreachable', head: styled('bad', 'Offline') },
  { state: 'reverted', head: styled('warn', 'Reverted') },
  { state: 'running', head: styled('accent', 'Running') },
  { state: 'waiting', head: styled('strong', 'Waiting') },
  { state: 'skipped', head: styled('warn', 'Skipped') },
  { state: 'succeeded', head: styled('good', 'Succeeded') },
];

interface GroupOptions {
  readonly state: AgentState;
  readonly head: Span;
  readonly verbose: boolean;
}

function groupView({ agents }: RolloutDetail, { state, head, verbose }: GroupOptions): View {
  const members = agents.filter((agent) => agent.state === state);
  if (members.length === 0) return linesOf([]);
  const groups = new Map<string, RolloutAgent[]>();
  for (const agent of members) {
    const group = groups.get(sameness(agent));
    if (group === undefined) groups.set(sameness(agent), [agent]);
    else group.push(agent);
  }
  const all = [...groups.values()];
  const shown = verbose ? all : all.slice(0, GROUPED);
  const left = all.slice(shown.length).reduce((sum, group) => sum + group.length, 0);
  return proseOf([
    head,
    ...shown.flatMap((group) => groupLines(group, verbose)),
    ...(left === 0 ? [] : [styled('dim', `  and ${left} more with other errors: --verbose shows all`)]),
  ]);
}

/** Returns what must be equal for two agents of one state to share a line. */
function sameness({ error, node_id, name }: RolloutAgent): string {
  if (error === null) return '';
  return `${error.code} ${error.message.replaceAll(node_id, '…').replaceAll(name ?? node_id, '…')}`;
}

/** Maximum number of listed errors in one state; the rest is counted. */
const GROUPED = 20;

/** Maximum number of listed names; the rest is counted. */
const NAMED = 10;

function groupLines(group: readonly RolloutAgent[], verbose: boolean): readonly Line[] {
  const [first] = group;
  if (first === undefined) return [];
  const named = verbose ? group : group.slice(0, NAMED);
  const names = named.map((agent) => agentName({ ...agent, initial_hostname: '' })).join(', ');
  const more = group.length > named.length ? ` and ${group.length - named.length} more` : '';
  const { error } = first;
  if (error === null) return [`  ${names}${more}`];
  const operations = group.flatMap(({ operation_id }) => operation_id ?? []);
  const [operation] = operations;
  const [message = '', ...rest] = error.message.split('\n');
  return [
    [styled('strong', `  ${names}${more}`), ': ', message],
    ...rest.map((line) => `    ${line}`),
    ...(error.hint === null ? [] : error.hint.split('\n').map((line): Line => [styled('dim', '    hint: '), line])),
    ...(operation === undefined
      ? []
      : [
          [
            styled('dim', '    see:  '),
            `orch ops show ${operation}`,
            operations.length > 1 ? styled('dim', `  (of ${agentName({ ...first, initial_hostname: '' })})`) : '',
          ],
        ]),
  ];
}
