/** How long a flood goes on being shown after Ctrl-C, to a terminal that is slow and to one that is not. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { OURS, open, SSH, type Target } from './targets.js';

const ROUNDS = 3;
const FLOOD = 3_000;
/** Bytes a second of a slow terminal. */
const SLOW = 2e6;

export async function measureQuiet(targets: readonly Target[]): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const [reader, pace] of [
    ['a reader of 2 MB/s', SLOW],
    ['a fast reader', undefined],
  ] as const) {
    const times = new Map<string, number[]>(targets.map(({ name }) => [name, []]));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const target of targets) times.get(target.name)?.push(await timeOf(target, pace));
    }
    const { [OURS]: ours = 0, ...beside } = Object.fromEntries([...times].map(([name, all]) => [name, median(all)]));
    const peer = beside[SSH];
    const isMet = peer === undefined ? null : ours <= peer;
    const what = `terminal: Ctrl-C to quiet, ${reader}`;
    rows.push({ what, unit: 'ms', ours, beside, goal: `at most ${SSH}`, isMet });
  }
  return rows;
}

async function timeOf(target: Target, pace: number | undefined): Promise<number> {
  const typist = await open(target, pace);
  try {
    typist.type('yes "the quick brown fox jumps over the lazy dog, and over it again, and over again"\r');
    await wait(FLOOD);
    const start = performance.now();
    typist.type('\x03');
    await typist.prompt();
    return performance.now() - start;
  } finally {
    await typist.close();
  }
}
