/** How fast a large file goes through. */
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { alternate, atLeastTimes, type Row, rowOf } from '../row.js';
import { enter, LIMIT, open, type Target } from './targets.js';

const ROUNDS = 3;
const LINE = `${'The quick brown fox jumps over the lazy dog. '.repeat(2).slice(0, 79)}\n`;
const LINES = 600_000;
/** The terminal puts a carriage return before each end of a line. */
const SHOWN = LINES * (LINE.length + 1);
const WHAT = 'terminal: throughput';

export const THROUGHPUT_ROWS = [WHAT];

export async function measureThroughput(targets: readonly Target[]): Promise<readonly Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-bench-'));
  const path = join(directory, 'large');
  const file = createWriteStream(path);
  for (let line = 0; line < LINES; line += 10_000) file.write(LINE.repeat(10_000));
  file.end();
  await finished(file);
  try {
    const programs = new Map(targets.map((target) => [target.name, () => rateOf(target, path)]));
    const runs = await alternate(ROUNDS, programs);
    return [rowOf({ what: WHAT, unit: 'MB/s', runs, goal: atLeastTimes(0.95, LIMIT) })];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Megabytes a second. */
async function rateOf(target: Target, path: string): Promise<number> {
  const typist = await open(target);
  try {
    await enter(typist, 'stty -echo');
    const before = typist.received;
    const start = performance.now();
    await enter(typist, `cat ${path}`);
    const seconds = (performance.now() - start) / 1_000;
    const bytes = typist.received - before;
    if (bytes < SHOWN) throw new Error(`${target.name} shows ${bytes} bytes of ${SHOWN}`);
    return bytes / 1e6 / seconds;
  } finally {
    await typist.close();
  }
}
