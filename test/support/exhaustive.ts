/** Cases that `npm test` leaves to `npm run test:long`. `long-suites.ts` names each suite that has some, with the reason. */
import { it } from 'vitest';

export const IS_EXHAUSTIVE = process.env.ORCH_TEST_LONG === '1';

/** Returns all cases in `npm run test:long`, and the first few in `npm test`. */
export const firstOf = <T>(few: number, cases: readonly T[]): readonly T[] =>
  IS_EXHAUSTIVE ? cases : cases.slice(0, few);

/** `it` in `npm run test:long`. In `npm test` the test is not defined. */
export const itInLong: (title: string, work: () => Promise<void>, timeoutMs?: number) => void = IS_EXHAUSTIVE
  ? it
  : () => undefined;

/** Random cases: so many in `npm run test:long`, and a fifth of them in `npm test`. */
export const drawn = (runs: number): number => (IS_EXHAUSTIVE ? runs : Math.ceil(runs / 5));
