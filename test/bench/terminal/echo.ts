/** How long a key takes until it is shown. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Row } from '../row.js';
import { median, percentile } from '../statistics.js';
import { BARE, JUMP, OURS, open, type Target } from './targets.js';
import type { Typist } from './typist.js';

const ROUNDS = 8;
const KEYS = 250;
/** Between keys, in milliseconds: nobody types while the key before is not shown, nor right after it. */
const PAUSE = 2;

export async function measureEcho(targets: readonly Target[]): Promise<readonly Row[]> {
  const typists = new Map<string, Typist>();
  const times = new Map<string, number[]>(targets.map(({ name }) => [name, []]));
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
        for (let key = 0; key < KEYS; key += 1) {
          times.get(name)?.push(await typist.key('k'));
          await wait(PAUSE);
        }
      }
    }
  } finally {
    for (const typist of typists.values()) await typist.close();
  }
  return [p50(times), p99(times)];
}

const of = (times: ReadonlyMap<string, readonly number[]>, part: number): Record<string, number> =>
  Object.fromEntries(
    [...times].map(([name, values]) => [name, part === 0.5 ? median(values) : percentile(values, part)]),
  );

function p50(times: ReadonlyMap<string, readonly number[]>): Row {
  const { [OURS]: ours = 0, ...beside } = of(times, 0.5);
  const peer = beside[JUMP];
  const isMet = peer === undefined ? null : ours <= peer;
  return { what: 'terminal: echo of a key, p50', unit: 'ms', ours, beside, goal: `at most ${JUMP}`, isMet };
}

function p99(times: ReadonlyMap<string, readonly number[]>): Row {
  const { [OURS]: ours = 0, ...beside } = of(times, 0.99);
  const most = (beside[BARE] ?? 0) + 1.5;
  const goal = `at most ${BARE} + 1.5 ms`;
  return { what: 'terminal: echo of a key, p99', unit: 'ms', ours, beside, goal, isMet: ours <= most };
}
