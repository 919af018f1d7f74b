/** How fast a large file goes through. */
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { alternate, atLeastTimes, type Goal, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { enter, LIMIT, open, type Target } from './targets.js';

const ROUNDS = sized(3, 1);
const LINE = `${'The quick brown fox jumps over the lazy dog. '.repeat(2).slice(0, 79)}\n`;
const LINES = sized(600_000, 5_000);
const WHAT = 'terminal: throughput';

export const THROUGHPUT_ROWS = [WHAT];

export const measureThroughput = (targets: readonly Target[]): Promise<readonly Row[]> =>
  rateRows(targets, { what: WHAT, lines: LINES, goal: atLeastTimes(0.95, LIMIT) });

interface RateOptions {
  readonly what: string;
  /** Size of the file. */
  readonly lines: number;
  readonly goal: Goal;
}

/** Measures megabytes per second of a file. */
export async function rateRows(
  targets: readonly Target[],
  { what, lines, goal }: RateOptions,
): Promise<readonly Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-bench-'));
  const path = join(directory, 'large');
  const file = createWriteStream(path);
  for (let line = 0; line < lines; line += 10_000) file.write(LINE.repeat(10_000));
  file.end();
  await finished(file);
  try {
    const programs = new Map(targets.map((target) => [target.name, () => rateOf(target, path, lines)]));
    return [rowOf({ what, unit: 'MB/s', runs: await alternate(ROUNDS, programs), goal })];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function rateOf(target: Target, path: string, lines: number): Promise<number> {
  // The terminal puts a carriage return before each end of a line.
  const shown = lines * (LINE.length + 1);
  const typist = await open(target);
  try {
    await enter(typist, 'stty -echo');
    const before = typist.received;
    const start = performance.now();
    await enter(typist, `cat ${path}`);
    const seconds = (performance.now() - start) / 1_000;
    const bytes = typist.received - before;
    if (bytes < shown) throw new Error(`${target.name} shows ${bytes} bytes of ${shown}`);
    return bytes / 1e6 / seconds;
  } finally {
    await typist.close();
  }
}
