/** How fast a large file goes through. */
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { enter, JUMP, OURS, open, type Target } from './targets.js';

const ROUNDS = 3;
const LINE = `${'The quick brown fox jumps over the lazy dog. '.repeat(2).slice(0, 79)}\n`;
const LINES = 600_000;
/** The terminal puts a carriage return before each end of a line. */
const SHOWN = LINES * (LINE.length + 1);

export async function measureThroughput(targets: readonly Target[]): Promise<readonly Row[]> {
  const directory = mkdtempSync(join(tmpdir(), 'orch-bench-'));
  const path = join(directory, 'large');
  const file = createWriteStream(path);
  for (let line = 0; line < LINES; line += 10_000) file.write(LINE.repeat(10_000));
  file.end();
  await finished(file);
  const rates = new Map<string, number[]>(targets.map(({ name }) => [name, []]));
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const target of targets) rates.get(target.name)?.push(await rateOf(target, path));
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  const { [OURS]: ours = 0, ...beside } = Object.fromEntries([...rates].map(([name, all]) => [name, median(all)]));
  const peer = beside[JUMP];
  const isMet = peer === undefined ? null : ours >= 0.9 * peer;
  return [{ what: 'terminal: throughput', unit: 'MB/s', ours, beside, goal: `at least 0.9 x ${JUMP}`, isMet }];
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
