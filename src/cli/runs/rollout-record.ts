/** Words about a stored rollout: its state, its progress, and what to do next. */
import type { RolloutAgent, RolloutRecord } from '../../contract/rollouts.js';
import { isFaultCode } from '../../kernel/fault.js';
import { fewOf } from '../../kernel/few-of.js';
import { EXIT, type ExitStatus, exitStatusOfCode } from '../exit-status.js';
import { count, formatTime } from '../format.js';
import { type Line, type Span, styled } from '../outcome.js';

export type RolloutState = RolloutRecord['state'];

/** States for `--state`. The compiler checks them against the contract. */
const states = {
  running: true,
  paused: true,
  halted: true,
  reverting: true,
  succeeded: true,
  failed: true,
  cancelled: true,
  reverted: true,
} satisfies Readonly<Record<RolloutState, true>>;

const isState = (word: string): word is RolloutState => Object.hasOwn(states, word);

export const ROLLOUT_STATES: readonly RolloutState[] = Object.keys(states).filter(isState);

const STYLES: Readonly<Record<RolloutState, 'good' | 'bad' | 'warn' | 'accent'>> = {
  running: 'accent',
  paused: 'warn',
  halted: 'bad',
  reverting: 'accent',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'warn',
  reverted: 'warn',
};

/** Renders a state; one of a newer orchestrator has no colour. */
export const rolloutState = ({ state }: Pick<RolloutRecord, 'state'>, word: string = state): Span =>
  isState(state) ? styled(STYLES[state], word) : word;

/** Returns what chose the agents, or the modules if they were named. */
export function rolloutSubject({ assignment, selector, modules, counts }: RolloutRecord): string {
  if (assignment !== null) return assignment;
  if (selector !== null) return selector;
  return modules.length > 0 ? modules.join(' ') : count(counts.agents, 'agent');
}

/** Returns the agents that succeeded of all agents, such as `7/12`. */
export const rolloutProgress = ({ counts }: RolloutRecord): string => `${counts.succeeded}/${counts.agents}`;

/** Returns the wave such as `2/3`; '' for a rollout in a single wave. */
export const waveFraction = ({ wave }: RolloutRecord): string =>
  wave === null || wave.of < 2 ? '' : `${wave.number}/${wave.of}`;

/** Returns the number of agents that did not succeed, except skipped ones. */
export const rolloutFailures = ({ counts }: RolloutRecord): number => counts.failed + counts.unreachable;

/** Returns the place such as ` in wave 2 of 3`; '' for a rollout in a single wave. */
const inWave = ({ wave }: RolloutRecord): string =>
  wave === null || wave.of < 2 ? '' : ` in wave ${wave.number} of ${wave.of}`;

/** Returns what the rollout does now, such as `wave 2 of 3, soaking until …`; '' if it has ended or halted. */
export function rolloutStage(rollout: RolloutRecord): string {
  const { state, wave, reason } = rollout;
  if (isSettled(rollout)) return '';
  if (state !== 'running') return reason === null ? state : `${state}: ${reason}`;
  if (wave === null) return '';
  const place = wave.of < 2 ? [] : [`wave ${wave.number} of ${wave.of}`];
  const soak = wave.soaking_until === null ? [] : [`soaking until ${formatTime(wave.soaking_until)}`];
  return [...place, ...soak].join(', ');
}

type Counts = RolloutRecord['counts'];

/** Names of the numbers of agents, those that need attention first. */
const COUNTED: readonly (readonly [keyof Counts, string, Parameters<typeof styled>[0] | null])[] = [
  ['failed', 'failed', 'bad'],
  ['unreachable', 'offline', 'bad'],
  ['reverted', 'reverted', 'warn'],
  ['running', 'running', 'accent'],
  ['waiting', 'waiting', null],
  ['skipped', 'skipped', 'warn'],
  ['succeeded', 'succeeded', 'good'],
];

export function countsLine({ counts }: RolloutRecord): Line {
  const parts = COUNTED.filter(([key]) => counts[key] > 0).map(([key, word, style]): Span => {
    const text = `${counts[key]} ${word}`;
    return style === null ? text : styled(style, text);
  });
  return [`${counts.agents}: `, ...parts.flatMap((part, index) => (index === 0 ? [part] : [', ', part]))];
}

/** Returns whether the rollout neither runs nor will by itself. */
export const isSettled = ({ state }: Pick<RolloutRecord, 'state'>): boolean =>
  state !== 'running' && state !== 'reverting' && state !== 'paused';

/** Words before and for each state in a sentence. */
const SENTENCES: Readonly<Record<RolloutState, readonly [before: string, word: string]>> = {
  running: ['is', 'running'],
  paused: ['is', 'paused'],
  halted: ['has', 'halted'],
  reverting: ['is being', 'reverted'],
  succeeded: ['has', 'succeeded'],
  failed: ['has', 'failed'],
  cancelled: ['was', 'cancelled'],
  reverted: ['was', 'reverted'],
};

/** Returns a sentence about the end of a rollout, or about its present state. */
export function rolloutSentence(rollout: RolloutRecord): Line {
  const { rollout_id: id, state, reason } = rollout;
  const [before, word] = isState(state) ? SENTENCES[state] : ['is', state];
  const isStopped = state === 'paused' || state === 'halted';
  const end = `${isStopped ? inWave(rollout) : ''}${reason === null ? '.' : `: ${reason}`}`;
  return [styled('strong', `Rollout ${id}`), ` ${before} `, rolloutState(rollout, word), end];
}

/** A command that may follow, what for, and its effect. */
interface NextStep {
  readonly label: string;
  readonly command: string;
  readonly effect: string;
}

/** Returns the commands that may follow. */
function nextSteps({ rollout_id: id, state, counts }: RolloutRecord): readonly NextStep[] {
  const failures = counts.failed + counts.unreachable;
  const again = failures + counts.skipped;
  const watch = { label: 'watch it', command: `orch rollouts watch ${id}`, effect: '' };
  const cancel = { label: 'cancel it', command: `orch rollouts cancel ${id}`, effect: '' };
  const resume = {
    label: 'resume it',
    command: `orch rollouts resume ${id}`,
    effect: counts.waiting === 0 ? '' : `${agentsWait(counts.waiting)}`,
  };
  const retry = {
    label: 'try again',
    command: `orch rollouts retry ${id}`,
    effect:
      failures === 0
        ? `${count(again, 'agent')} ${again === 1 ? 'was' : 'were'} skipped`
        : `${count(again, 'agent')} did not succeed`,
  };
  const tryAgain = again > 0 ? [retry] : [];
  switch (state) {
    case 'running':
      return [watch, { ...watch, label: 'pause it', command: `orch rollouts pause ${id}` }, cancel];
    case 'paused':
      return [resume, cancel];
    case 'halted':
      return [resume, ...tryAgain, cancel];
    case 'reverting':
      return [watch];
    default:
      return tryAgain;
  }
}

const agentsWait = (number: number): string => `${count(number, 'agent')} ${number === 1 ? 'waits' : 'wait'}`;

/** Returns a line for each command that may follow. */
export function nextStepLines(rollout: RolloutRecord): readonly Line[] {
  const steps = nextSteps(rollout);
  const width = steps.reduce((most, { label }) => Math.max(most, label.length + 1), 0);
  return steps.map(({ label, command, effect }) => [
    `  ${`${label}:`.padEnd(width)} ${command}`,
    effect === '' ? '' : styled('dim', `  ${effect}`),
  ]);
}

/** Returns a warning about values that have changed since the rollout began; none without. */
export function valueChangeLines({ value_changes: changes, counts }: RolloutRecord): readonly Line[] {
  if (changes == null || changes.length === 0) return [];
  const names = changes.map(
    ({ source, name, by }) => `${source === 'values' ? 'value set' : 'assignment'} ${name} (${by})`,
  );
  const said: Line = [styled('warn', 'Values have changed since it began: '), fewOf(names)];
  if (counts.waiting === 0) return [said, '  Agents with older values are behind: orch agents --status behind'];
  return [
    said,
    `  Waiting agents (${counts.waiting}) get the new values, or refuse a stale plan.`,
    '  To give all agents the same values, cancel it and apply again.',
  ];
}

/** Returns the exit status of a rollout, like that of the apply which began it. */
export function exitStatusOfRollout(rollout: RolloutRecord, agents: readonly RolloutAgent[]): ExitStatus {
  const { state } = rollout;
  if (state === 'halted' || state === 'cancelled' || state === 'reverted') return EXIT.partlyFailed;
  if (state !== 'failed') return EXIT.done;
  const failures = agents.flatMap(({ state, error }) => {
    if (state === 'unreachable') return [EXIT.offline];
    if (state !== 'failed') return [];
    const status = error !== null && isFaultCode(error.code) ? exitStatusOfCode(error.code) : EXIT.error;
    return [status === EXIT.error ? EXIT.partlyFailed : status];
  });
  const [first] = failures;
  if (first === undefined) return EXIT.partlyFailed;
  const areAlike = failures.every((status) => status === first);
  if (!areAlike) return EXIT.partlyFailed;
  return first === EXIT.offline || failures.length === agents.length ? first : EXIT.partlyFailed;
}
