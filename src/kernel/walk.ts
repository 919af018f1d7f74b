/**
 * The walk over many agents in waves, as a pure function: how far it has come in, the next step out.
 *
 * With a bound the walk begins with one agent in flight (slow start). Each success adds one, so the number doubles from
 * round to round; a failure resets it to one. The failure limit is never exceeded, because no more agents are in flight
 * than may still fail.
 */

/** Number of agents of one wave in each state. */
export interface WaveTally {
  /** Agents that may start now. */
  readonly ready: number;
  /** Offline agents that may be back soon, and agents that another operation has; the wave waits for them. */
  readonly awaited: number;
  /** Offline agents that may return later. They hold nothing up. */
  readonly away: number;
  readonly running: number;
  readonly succeeded: number;
  /** Failed and unreachable agents that count. */
  readonly failed: number;
  /** Failed and unreachable agents that no longer count, because the walk was resumed since. */
  readonly forgiven: number;
  /** Agents that the walk leaves out. */
  readonly skipped: number;
}

/** Tally of a wave without agents. */
export const EMPTY_TALLY: WaveTally = {
  ready: 0,
  awaited: 0,
  away: 0,
  running: 0,
  succeeded: 0,
  failed: 0,
  forgiven: 0,
  skipped: 0,
};

export interface WalkBounds {
  /** Maximum number of agents in flight. */
  readonly concurrency: number;
  /** True when the first wave consists of canaries: all of them must succeed. */
  readonly hasCanaries: boolean;
  /** Number of failed agents after which no other agent starts; null for no limit. */
  readonly maxFailures: number | null;
  /** Milliseconds between the last apply of a wave and its health checks; 0 for neither. */
  readonly soak: number;
}

export interface WalkView {
  readonly bounds: WalkBounds;
  readonly waves: readonly WaveTally[];
  /** Number of waves that are behind the walk; the wave at this index is the current one. */
  readonly passed: number;
  /** Agents that count as failed because they fell silent, and may still be at work; absent means none. */
  readonly silent?: number;
  /** Agents that the slow start allows in flight. */
  readonly window: number;
  /** End of the soak of the current wave in monotonic milliseconds; null before it has begun. */
  readonly soakEnd: number | null;
  /** Monotonic milliseconds. */
  readonly now: number;
}

export type WalkStep =
  /** Start this many ready agents of the waves up to the current one, those of earlier waves first. */
  | { readonly do: 'start'; readonly count: number }
  /** Nothing to do before an agent ends or returns; or before a time in monotonic milliseconds. */
  | { readonly do: 'wait'; readonly until: number | null }
  /** The current wave is applied, and its soak begins. */
  | { readonly do: 'soak' }
  /** The soak of the current wave is over, and its health checks are due. */
  | { readonly do: 'check' }
  /** The current wave is over. */
  | { readonly do: 'pass' }
  /** A bound is reached: no other agent starts. */
  | { readonly do: 'halt'; readonly reason: string }
  /** Every agent has its end. `reason` is why it failed. */
  | { readonly do: 'finish'; readonly state: 'succeeded' | 'failed'; readonly reason: string | null };

/** Returns the number of agents in flight with which a walk begins. */
export const firstWindow = ({ hasCanaries, maxFailures }: WalkBounds, waves: number): number =>
  hasCanaries || maxFailures !== null || waves > 1 ? 1 : Number.POSITIVE_INFINITY;

/** Returns the next step of a walk that is neither paused nor halted. */
export function nextStep(view: WalkView): WalkStep {
  const { bounds, waves, passed, silent = 0, window } = view;
  const running = sum(waves, ({ running: count }) => count);
  const waiting = sum(waves, ({ ready, awaited, away }) => ready + awaited + away);
  const broken = brokenBound(view);
  if (broken !== null) {
    const { reason } = broken;
    if (waiting > 0) return { do: 'halt', reason };
    return running > 0 ? WAIT : { do: 'finish', state: 'failed', reason };
  }
  const open = waves.slice(0, passed + 1);
  const ready = sum(open, (wave) => wave.ready);
  const count = Math.min(ready, Math.min(bounds.concurrency - silent, window, mayFail(view)) - running);
  if (count > 0) return { do: 'start', count };
  if (running > 0 || ready > 0 || sum(open, ({ awaited }) => awaited) > 0) return WAIT;
  const wave = waves[passed];
  if (wave !== undefined) return stepOfWave(view, wave);
  if (waiting > 0) return WAIT;
  const failed = sum(waves, (one) => one.failed + one.forgiven);
  if (failed === 0) return { do: 'finish', state: 'succeeded', reason: null };
  return { do: 'finish', state: 'failed', reason: `${agentsOf(failed)} did not succeed` };
}

/** Returns the step at the end of a wave in which nothing is left to start. */
function stepOfWave({ bounds, waves, passed, soakEnd, now }: WalkView, wave: WaveTally): WalkStep {
  // As long as no agent has proved the wave, the next one is held up by those that may return.
  const isProved = wave.succeeded > 0 || wave.away === 0 || passed === waves.length - 1;
  if (!isProved) return WAIT;
  const others = sum(waves.slice(passed + 1), sizeOf);
  if (passed === 0 && bounds.hasCanaries && wave.succeeded === 0 && others > 0) {
    return { do: 'halt', reason: 'no canary agent was applied' };
  }
  if (bounds.soak === 0 || wave.succeeded === 0) return { do: 'pass' };
  if (soakEnd === null) return { do: 'soak' };
  return now < soakEnd ? { do: 'wait', until: soakEnd } : { do: 'check' };
}

/** A bound that is reached. */
export interface BrokenBound {
  readonly reason: string;
  /** Index of the wave whose failures reached it; for a number of failures, the last wave that has one. */
  readonly wave: number;
}

/** Returns why no other agent may start, or null. */
export function brokenBound({ bounds, waves, passed }: WalkView): BrokenBound | null {
  const { maxFailures, hasCanaries } = bounds;
  for (const [wave, { failed }] of waves.slice(0, passed + 1).entries()) {
    if (failed === 0) continue;
    const size = sizeOf(waves[wave]);
    if (wave === 0 && hasCanaries) return { reason: `${failed} of ${size} canary agents did not succeed`, wave };
    const isStrict = maxFailures === null && wave < waves.length - 1;
    if (isStrict) return { reason: `${failed} of ${size} agents of wave ${wave + 1} did not succeed`, wave };
  }
  const failures = failuresOf(waves);
  if (maxFailures === null || failures < maxFailures) return null;
  const reason = `${agentsOf(failures)} ${failures === 1 ? 'has' : 'have'} failed`;
  return { reason, wave: waves.findLastIndex(({ failed }) => failed > 0) };
}

/** Returns how many agents may fail until the limit is reached. */
const mayFail = ({ bounds: { maxFailures }, waves }: WalkView): number =>
  maxFailures === null ? Number.POSITIVE_INFINITY : Math.max(0, maxFailures - failuresOf(waves));

const failuresOf = (waves: readonly WaveTally[]): number => sum(waves, ({ failed }) => failed);

const sizeOf = (wave: WaveTally | undefined): number =>
  wave === undefined ? 0 : Object.values(wave).reduce((total, count) => total + count, 0);

const agentsOf = (count: number): string => (count === 1 ? '1 agent' : `${count} agents`);

const sum = (waves: readonly WaveTally[], of: (wave: WaveTally) => number): number =>
  waves.reduce((total, wave) => total + of(wave), 0);

const WAIT: WalkStep = { do: 'wait', until: null };

/** A number of agents, or a percentage of them such as `10%`. */
export type Share = number | string;

const isPercentage = (share: Share): share is string => typeof share === 'string';

/** Returns the number of agents of a share, rounded up or down. */
export function shareOf(share: Share, agents: number, round: 'up' | 'down'): number {
  if (!isPercentage(share)) return share;
  const exact = Number(share.slice(0, -1)) * agents;
  // In whole hundredths, because 0.07 * 100 is above 7.
  return round === 'up' ? Math.ceil(exact / 100) : Math.floor(exact / 100);
}

export interface WaveOptions {
  readonly agents: number;
  readonly canary: Share;
  /** Cumulative numbers of agents. */
  readonly waves: readonly Share[];
}

/**
 * Returns the number of agents in each wave, the canaries first. Targets that add no agent are left out, and the last wave has
 * the agents that no target names.
 */
export function waveSizes({ agents, canary, waves }: WaveOptions): readonly number[] {
  const sizes: number[] = [];
  let covered = 0;
  for (const share of [canary, ...waves, agents]) {
    const target = Math.min(agents, shareOf(share, agents, 'up'));
    if (target <= covered) continue;
    sizes.push(target - covered);
    covered = target;
  }
  return sizes;
}

/** Returns the first pair of waves of which the second is below or equal to the first, or null. */
export function unorderedWaves(waves: readonly Share[]): readonly [Share, Share] | null {
  for (const [index, share] of waves.entries()) {
    const before = waves.slice(0, index).findLast((other) => isPercentage(other) === isPercentage(share));
    if (before !== undefined && Number.parseInt(`${share}`, 10) <= Number.parseInt(`${before}`, 10)) {
      return [before, share];
    }
  }
  return null;
}
