/** How long a key takes until it is shown. */
import { setTimeout as wait } from 'node:timers/promises';
import { atMostTimes, OURS, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { median, percentile } from '../statistics.js';
import { BARE, LIMIT, open, type Target } from './targets.js';
import type { Typist } from './typist.js';

const ROUNDS = sized(8, 1);
const KEYS = sized(250, 5);
/** Between keys, in milliseconds: people do not type before the last key is shown, nor right after it. */
const PAUSE = 2;
const P50 = 'terminal: echo of a key, p50';
const P99 = 'terminal: echo of a key, p99';

export const ECHO_ROWS = [P50, P99];

export async function measureEcho(targets: readonly Target[]): Promise<readonly Row[]> {
  const typists = new Map<string, Typist>();
  const rounds = new Map<string, (readonly number[])[]>(targets.map(({ name }) => [name, []]));
  try {
    for (const target of targets) {
      const typist = await open(target);
      typists.set(target.name, typist);
      typist.forget();
      typist.type("stty raw -echo; printf 'now-%s' raw; exec cat\r");
      await typist.shows(/now-raw/);
      for (let key = 0; key < KEYS; key += 1) await typist.key('w');
    }
    // In turns, so that whatever else the machine does is shared.
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [name, typist] of typists) {
        const times: number[] = [];
        for (let key = 0; key < KEYS; key += 1) {
          times.push(await typist.key('k'));
          await wait(PAUSE);
        }
        rounds.get(name)?.push(times);
      }
    }
  } finally {
    for (const typist of typists.values()) await typist.close();
  }
  const medians = new Map([...rounds].map(([name, all]) => [name, all.map(median)]));
  return [rowOf({ what: P50, unit: 'ms', runs: medians, goal: atMostTimes(1.1, LIMIT) }), p99(rounds)];
}

function p99(rounds: ReadonlyMap<string, readonly (readonly number[])[]>): Row {
  const values = [...rounds].map(([name, all]) => [name, percentile(all.flat(), 0.99)] as const);
  const { [OURS]: ours = Number.NaN, ...beside } = Object.fromEntries(values);
  const most = (beside[BARE] ?? 0) + 1.5;
  return { what: P99, unit: 'ms', ours, beside, goal: `at most ${BARE} + 1.5 ms`, isMet: ours <= most };
}
