/**
 * The states of a rollout and all moves between them, as pure functions: what it does next by itself (`nextMove`), and what a
 * request makes of it (`commanded`). `src/kernel/walk.ts` knows the waves; the classes beside this carry out what is said here.
 */
import { assertNever, Fault } from '../../../src/kernel/fault.js';
import { brokenBound, nextStep, type WalkView, type WaveTally } from '../../../src/kernel/walk.js';
import type { Party } from '../../core/domain-event.js';
import { notStarted } from './rollout-results.js';
import type { RolloutAgentRow, RolloutAgentState, RolloutRow } from './rollout-store.js';

/** The part of a row that a rollout changes. */
export type Progress = Partial<
  Pick<RolloutRow, 'state' | 'reason' | 'actor' | 'finished_at' | 'passed' | 'soaking_until' | 'expires_at'>
>;

/** All that the moves of a rollout follow from. */
export interface Situation {
  readonly row: Pick<RolloutRow, 'rollout_id' | 'state' | 'reason' | 'pace' | 'passed' | 'finished_at'>;
  readonly view: WalkView;
  /** Returns true if an agent of the wave, an index, was applied to or is about to be. */
  readonly isTouched: (wave: number) => boolean;
}

/** An audit event of the new state. */
export interface Announced {
  readonly type: 'rollout.halted' | 'rollout.succeeded' | 'rollout.failed' | 'rollout.reverted';
  readonly reason: string | null;
}

/** A change of a rollout. */
export interface Change {
  readonly progress: Progress;
  /** True if it has its end now. */
  readonly isOver: boolean;
  readonly event: Announced | null;
  /** Why agents that wait are left out from now on; absent lets them wait. */
  readonly stopped?: string;
}

export type Move =
  /** Nothing to do before an agent ends or returns, a time is over, or a request comes. */
  | { readonly do: 'wait' }
  /** Start this many ready agents. */
  | { readonly do: 'start'; readonly count: number }
  | { readonly do: 'soak' }
  /** Run the health checks of the current wave. */
  | { readonly do: 'check' }
  /** Revert the current wave. */
  | { readonly do: 'revert' }
  | { readonly do: 'change'; readonly change: Change };

/** Returns what a rollout does next by itself. */
export function nextMove(situation: Situation): Move {
  const { row, view } = situation;
  switch (row.state) {
    case 'running':
      return nextOfWalk(situation);
    case 'reverting':
      return inFlight(view) > 0 ? WAIT : { do: 'revert' };
    case 'cancelled':
      if (inFlight(view) > 0 || row.finished_at !== null) return WAIT;
      // An agent that was starting when the rollout was cancelled waits again after a restart.
      return { do: 'change', change: { ...ended({}, null), stopped: row.reason ?? 'the rollout was cancelled' } };
    case 'paused':
    case 'halted':
    case 'succeeded':
    case 'failed':
    case 'reverted':
      return WAIT;
    default:
      return assertNever(row.state);
  }
}

function nextOfWalk(situation: Situation): Move {
  const { view } = situation;
  const step = nextStep(view);
  switch (step.do) {
    case 'wait':
      return WAIT;
    case 'start':
    case 'soak':
    case 'check':
      return step;
    case 'pass':
      return { do: 'change', change: passed(situation) };
    case 'halt':
      return { do: 'change', change: brokenOff(situation, step.reason, brokenBound(view)?.wave) };
    case 'finish': {
      const broken = brokenBound(view);
      if (broken !== null) return { do: 'change', change: brokenOff(situation, broken.reason, broken.wave) };
      const { state, reason } = step;
      return { do: 'change', change: ended({ state, reason }, { type: `rollout.${state}`, reason }) };
    }
    default:
      return assertNever(step);
  }
}

/** Returns the change of a rollout whose current wave is over. */
export const passed = ({ row }: Pick<Situation, 'row'>): Change => ({
  progress: { passed: row.passed + 1, soaking_until: null },
  isOver: false,
  event: null,
});

/**
 * Returns the change of a rollout that starts no other agent, because a wave has reached a bound or failed a health check. A wave
 * that is reverted becomes the current one, so that a restart goes on with it.
 * @param wave index of that wave
 */
export function brokenOff(situation: Situation, reason: string, wave = situation.row.passed): Change {
  const { row, view } = situation;
  const halted = { type: 'rollout.halted', reason } as const;
  if (row.pace.onFailure === 'revert') {
    const told = situation.isTouched(wave) ? `${reason}; wave ${wave + 1} is reverted` : reason;
    const progress = { state: 'reverting', reason, passed: wave, soaking_until: null } as const;
    return { progress, isOver: false, event: { ...halted, reason: told } };
  }
  const waiting = sum(view, ({ ready, awaited, away }) => ready + awaited + away);
  if (waiting + inFlight(view) === 0) return ended({ state: 'failed', reason }, { type: 'rollout.failed', reason });
  return { progress: { state: 'halted', reason, soaking_until: null }, isOver: false, event: halted };
}

/** The outcome of reverting the current wave. */
export interface Reverted {
  /** Agents of the wave that were applied to, and how many of them are not reverted. */
  readonly applied: number;
  readonly left: number;
  /** True if some agent of the wave is reverted, also by an earlier attempt. */
  readonly hasReverted: boolean;
}

/** Returns the end of a rollout whose wave was reverted, as far as that was possible. */
export function revertedEnd({ row }: Pick<Situation, 'row'>, { applied, left, hasReverted }: Reverted): Change {
  const why = row.reason ?? 'the rollout was reverted';
  if (left === 0 && hasReverted) {
    return { ...ended({ state: 'reverted' }, { type: 'rollout.reverted', reason: row.reason }), stopped: why };
  }
  const reason = left > 0 ? `${why}${notReverted(left, applied)}` : `${why}; there was nothing to revert`;
  return { ...ended({ state: 'failed', reason }, { type: 'rollout.failed', reason }), stopped: why };
}

/** Returns the end of the reason of a rollout that could not revert some agents of its wave. */
const notReverted = (left: number, all: number | string): string => `; ${left} of ${all} agents could not be reverted`;

const NOT_REVERTED = /; \d+ of (\d+) agents could not be reverted$/;
/** The words of an earlier correction; only the last one is kept. */
const LATER = /; later .* reported that it has \w+$/;

/**
 * Returns what an ended or halted rollout says instead, after the end of a silent agent became known; null if its word stays. Nothing
 * begins by that.
 * @param left agents that did not succeed, or in a rollout that reverts, agents of its wave that are not reverted
 */
export function corrected(
  { state, reason, pace, finished_at }: Situation['row'],
  { state: agentState, name, node_id }: Pick<RolloutAgentRow, 'state' | 'name' | 'node_id'>,
  left: number,
): Change | null {
  const told = reason ?? '';
  const who = name ?? node_id;
  if (state === 'halted') {
    const end = agentState === 'succeeded' ? 'succeeded' : 'failed';
    const later = `${told.replace(LATER, '')}; later ${who} reported that it has ${end}`;
    return { progress: { reason: later }, isOver: false, event: null };
  }
  if (state !== 'failed' || finished_at === null) return null;
  const isReverted = pace.onFailure === 'revert';
  if (left === 0) {
    const state = isReverted ? 'reverted' : 'succeeded';
    const progress = { state, reason: isReverted ? told.replace(NOT_REVERTED, '') : null } as const;
    const heard = `${who} was silent, and has reported its end`;
    return { progress, isOver: false, event: { type: `rollout.${state}`, reason: heard } };
  }
  const still = isReverted
    ? told.replace(NOT_REVERTED, (_, all) => notReverted(left, all))
    : `${agents(left)} did not succeed`;
  return { progress: { reason: still }, isOver: false, event: null };
}

export type Command =
  | { readonly do: 'pause'; readonly reason: string | null }
  | { readonly do: 'resume'; readonly actor: Party }
  /** Apply again to the agents that have not succeeded. `expiresAt`: Unix milliseconds until which offline ones are awaited. */
  | { readonly do: 'retry'; readonly actor: Party; readonly expiresAt: number | null }
  | { readonly do: 'cancel'; readonly reason: string }
  /** Start no further agent, because the orchestrator says so. */
  | { readonly do: 'halt'; readonly reason: string };

/** The effect of a command on a rollout and on the agents in some states. */
export interface Commanded {
  readonly progress: Progress;
  readonly agents: {
    readonly in: readonly RolloutAgentState[];
    readonly become: Partial<RolloutAgentRow>;
  } | null;
}

/** States of agents that a retry applies to again. */
const RETRIED = ['failed', 'unreachable', 'skipped', 'reverted'] as const satisfies readonly RolloutAgentState[];

/**
 * Returns what a command changes; null when the rollout is as the command wants it. Throws `rollout_finished` or
 * `rollout_in_progress`.
 */
export function commanded(situation: Situation, command: Command): Commanded | null {
  const { state } = situation.row;
  switch (command.do) {
    case 'halt':
      return state === 'running' ? { progress: { state: 'halted', reason: command.reason }, agents: null } : null;
    case 'pause':
      if (state === 'paused' || state === 'halted') return null;
      if (state === 'reverting') throw inProgress(situation, 'is being reverted');
      if (state !== 'running') throw finished(situation);
      return { progress: { state: 'paused', reason: command.reason }, agents: null };
    case 'resume':
      if (state === 'running' || state === 'reverting') return null;
      if (state !== 'paused' && state !== 'halted') throw finished(situation);
      return {
        progress: { state: 'running', reason: null, actor: command.actor, passed: firstOpenWave(situation) },
        agents: state === 'halted' ? { in: ['failed', 'unreachable'], become: { forgiven: 1 } } : null,
      };
    case 'cancel':
      if (situation.row.finished_at !== null) throw finished(situation);
      if (state === 'cancelled') return null;
      if (state === 'reverting') throw inProgress(situation, 'is being reverted');
      return {
        progress: { state: 'cancelled', reason: command.reason, soaking_until: null },
        agents: { in: ['waiting'], become: { state: 'skipped', error: notStarted(command.reason) } },
      };
    case 'retry':
      return retried(situation, command);
    default:
      return assertNever(command);
  }
}

function retried(situation: Situation, { actor, expiresAt }: Extract<Command, { readonly do: 'retry' }>): Commanded {
  const { row, view } = situation;
  const { state, rollout_id: id, passed } = row;
  if (state === 'running' || state === 'paused' || state === 'reverting') throw inProgress(situation, `is ${state}`);
  if (state === 'cancelled' && inFlight(view) > 0) throw inProgress(situation, 'still has agents in flight');
  const first = view.waves.findIndex(({ failed, forgiven, skipped }) => failed + forgiven + skipped > 0);
  if (first < 0 && state !== 'halted') {
    throw new Fault('rollout_finished', `rollout ${id} has nothing to retry: no agent failed or was left out`);
  }
  return {
    progress: {
      state: 'running',
      reason: null,
      actor,
      finished_at: null,
      passed: first < 0 ? passed : Math.min(passed, first),
      soaking_until: null,
      expires_at: expiresAt,
    },
    agents: { in: RETRIED, become: { state: 'waiting', forgiven: 0, operation_id: null, summary: null, error: null } },
  };
}

/** Returns the number of waves that are behind the walk, with a wave of which every agent failed or was left out. */
function firstOpenWave({ row: { passed }, view }: Situation): number {
  const wave = view.waves[passed];
  const isExhausted = wave !== undefined && wave.ready + wave.awaited + wave.away + wave.running + wave.succeeded === 0;
  return isExhausted ? passed + 1 : passed;
}

const ended = (progress: Progress, event: Announced | null): Change => ({
  progress: { ...progress, soaking_until: null },
  isOver: true,
  event,
});

const WAIT: Move = { do: 'wait' };

const sum = ({ waves }: WalkView, of: (wave: WaveTally) => number): number =>
  waves.reduce((total, wave) => total + of(wave), 0);

const inFlight = (view: WalkView): number => sum(view, ({ running }) => running);

const agents = (count: number): string => (count === 1 ? '1 agent' : `${count} agents`);

const finished = ({ row: { rollout_id: id, state } }: Situation): Fault =>
  new Fault('rollout_finished', `rollout ${id} has ended: it is ${state}`, {
    hint: `see what it did: orch rollouts show ${id}`,
    data: { rollout_id: id, state },
  });

const inProgress = ({ row: { rollout_id: id, state } }: Situation, what: string): Fault =>
  new Fault('rollout_in_progress', `rollout ${id} ${what}`, {
    hint:
      state === 'reverting'
        ? `wait for it: orch rollouts watch ${id}`
        : `wait for it, or cancel it: orch rollouts cancel ${id}`,
    data: { rollout_id: id, state },
  });
