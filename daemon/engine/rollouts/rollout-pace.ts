/** Resolves the bounds of a request for a number of agents, and divides the agents into waves. */
import { ROLLOUT_CONCURRENCY } from '../../../src/contract/rollout-concurrency.js';
import { Fault } from '../../../src/kernel/fault.js';
import { type Share, shareOf, unorderedWaves, type WalkBounds, waveSizes } from '../../../src/kernel/walk.js';
import type { RolloutPace } from './rollout-store.js';

/** Bounds as a request states them. */
export interface RequestedPace {
  readonly concurrency: Share | null;
  readonly canary: Share | null;
  readonly waves: readonly Share[];
  readonly soakSecs: number;
  readonly maxFailures: Share | null;
  readonly onFailure: 'halt' | 'revert';
  readonly skipOffline: boolean;
  readonly whenOnlineSecs: number | null;
}

/** Returns the bounds of a request that states none. */
export const DEFAULT_PACE: RequestedPace = {
  concurrency: null,
  canary: null,
  waves: [],
  soakSecs: 0,
  maxFailures: null,
  onFailure: 'halt',
  skipOffline: false,
  whenOnlineSecs: null,
};

/** Throws `invalid_body` for waves that do not ascend. */
export function checkPace({ waves }: Pick<RequestedPace, 'waves'>): void {
  const pair = unorderedWaves(waves);
  if (pair === null) return;
  throw new Fault('invalid_body', `the waves do not ascend: ${pair[1]} comes after ${pair[0]}`, {
    hint: 'waves are cumulative, such as 1, 10%, 100%',
  });
}

/** Resolves percentages: of canaries and waves they are rounded up, of the other bounds down, to at least 1. */
export function resolvePace(requested: RequestedPace, agents: number): RolloutPace {
  const { concurrency, canary, maxFailures, waves, ...rest } = requested;
  const canaries = Math.min(agents, shareOf(canary ?? 0, agents, 'up'));
  const atLeastOne = (share: Share) => Math.max(1, shareOf(share, agents, 'down'));
  return {
    ...rest,
    concurrency: Math.min(atLeastOne(concurrency ?? ROLLOUT_CONCURRENCY.standard), ROLLOUT_CONCURRENCY.maximum),
    canary: canaries,
    waves: waveSizes({ agents, canary: canaries, waves }),
    maxFailures: maxFailures === null ? null : atLeastOne(maxFailures),
  };
}

export const boundsOf = ({ concurrency, canary, maxFailures, soakSecs }: RolloutPace): WalkBounds => ({
  concurrency,
  hasCanaries: canary > 0,
  maxFailures,
  soak: soakSecs * 1000,
});

/**
 * Returns the number of each agent's wave, from 1. Canaries are connected agents, as far as there are enough; all others come
 * in the order of the rollout.
 */
export function assignWaves<A>(
  agents: readonly A[],
  { waves, canary }: Pick<RolloutPace, 'waves' | 'canary'>,
  isConnected: (agent: A) => boolean,
): readonly number[] {
  const candidates = canary === 0 ? [] : [...agents].sort((a, b) => Number(isConnected(b)) - Number(isConnected(a)));
  const canaries = new Set(candidates.slice(0, canary));
  const order = [...canaries, ...agents.filter((agent) => !canaries.has(agent))];
  const numbers = new Map<A, number>();
  let position = 0;
  for (const [index, size] of waves.entries()) {
    for (const agent of order.slice(position, position + size)) numbers.set(agent, index + 1);
    position += size;
  }
  return agents.map((agent) => numbers.get(agent) ?? 1);
}
