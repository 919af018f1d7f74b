/** Every row of the benchmarks, or of a few parts, gives a number. What the numbers are is the matter of `npm run bench`. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import type { Row } from './bench/row.js';
import { IS_EXHAUSTIVE } from './support/exhaustive.js';

const program = fileURLToPath(new URL('bench/bench.mjs', import.meta.url));

/** Runs the benchmarks with their smallest sizes. */
async function bench(...args: readonly string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [program, '--smallest', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk) => {
      output[name] += chunk;
    });
  }
  return new Promise((resolve) => child.on('close', (status) => resolve({ status, ...output })));
}

/** Parts that compute for a few seconds; all in `npm run test:long`. */
const PARTS = IS_EXHAUSTIVE ? [] : ['resolution', 'observation', 'local'];

it('gives a number for each row that --list names', { timeout: 1_800_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'orch-bench-rows-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'rows.json');
  const { status, stderr } = await bench(...PARTS, '--no-peers', '--json', file);
  expect(stderr.split('\n').filter((line) => line.includes(' failed: '))).toEqual([]);
  const { rows } = JSON.parse(readFileSync(file, 'utf8')) as { rows: readonly Row[] };
  expect(rows.filter(({ ours }) => typeof ours !== 'number').map(({ what }) => what)).toEqual([]);
  const listed = await bench(...PARTS, '--list');
  expect(rows.map(({ what }) => what)).toEqual(listed.stdout.trim().split('\n'));
  expect(rows.length).toBeGreaterThan(IS_EXHAUSTIVE ? 100 : 10);
  expect(status).toBe(0);
});
