/** How long a flood goes on being shown after Ctrl-C, to a terminal that is slow and to one that is not. */
import { setTimeout as wait } from 'node:timers/promises';
import { alternate, atMostTimes, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { open, SSH, type Target } from './targets.js';

const FLOOD = sized(3_000, 500);

interface Reader {
  readonly what: string;
  /** Bytes a second that it takes; no limit when null. */
  readonly pace: number | null;
  readonly rounds: number;
}

const READERS: readonly Reader[] = [
  { what: 'terminal: Ctrl-C to quiet, a reader of 2 MB/s', pace: 2e6, rounds: sized(3, 1) },
  { what: 'terminal: Ctrl-C to quiet, a fast reader', pace: null, rounds: sized(5, 1) },
];

export const QUIET_ROWS = READERS.map(({ what }) => what);

export async function measureQuiet(targets: readonly Target[]): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const { what, pace, rounds } of READERS) {
    const programs = new Map(targets.map((target) => [target.name, () => quietAfter(target, pace ?? undefined)]));
    const runs = await alternate(rounds, programs);
    rows.push(rowOf({ what, unit: 'ms', runs, goal: atMostTimes(1, SSH) }));
  }
  return rows;
}

/** Milliseconds from Ctrl-C to the prompt. */
export async function quietAfter(target: Target, pace?: number): Promise<number> {
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
