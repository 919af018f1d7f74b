/** An orchestrator that is killed while it records. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { recordingPath } from '../../../daemon/terminal/recordings/recording-files.js';
import { toRaw } from '../../../src/terminal/recording/convert-cast.js';
import { temporaryDirectory } from '../../support/database.js';
import { IS_EXHAUSTIVE } from '../../support/exhaustive.js';
import { all, bytesOfChunks, read } from '../../support/recording-format.js';
import { newEvents, newHead, openRecordings, until } from '../../support/recordings.js';
import { outputFrom } from './programs/output.mjs';

const ROUNDS = IS_EXHAUSTIVE ? 15 : 5;
const program = fileURLToPath(new URL('programs/record-forever.mjs', import.meta.url));

describe('a recording whose orchestrator is killed', () => {
  it(`loses nothing that was acknowledged and has no seam, in ${ROUNDS} rounds`, async () => {
    const dataDir = temporaryDirectory();
    const head = newHead();
    let acknowledged = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      acknowledged = Math.max(acknowledged, await recordUntilKilled(dataDir, head, round * (375 / ROUNDS)));
    }
    expect(acknowledged).toBeGreaterThan(0);
    const { recordings } = openRecordings({ dataDir });
    const { recorder, tail } = await recordings.recover(head, newEvents());
    expect(recorder.durable).toBeGreaterThanOrEqual(acknowledged);
    const file = readFileSync(join(dataDir, recorder.path));
    const raw = bytesOfChunks(await all(toRaw(await read(file, 64 * 1024))));
    expect(raw.equals(outputFrom(0, recorder.durable))).toBe(true);
    const [first] = tail;
    const kept = Buffer.concat(tail.map(({ bytes }) => bytes));
    expect(kept.equals(outputFrom(first?.offset ?? 0, kept.length))).toBe(true);
    expect((first?.offset ?? 0) + kept.length).toBe(recorder.durable);
    expect(existsSync(join(dataDir, recordingPath(head.sessionId, head.openedAt)))).toBe(true);
  });
});

/** The last offset that it has acknowledged. */
async function recordUntilKilled(dataDir: string, head: ReturnType<typeof newHead>, delay: number): Promise<number> {
  const child = spawn(process.execPath, [program, dataDir, head.sessionId, String(head.openedAt)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let told = '';
  let errors = '';
  child.stdout.on('data', (chunk) => {
    told += chunk;
  });
  child.stderr.on('data', (chunk) => {
    errors += chunk;
  });
  try {
    await until('it acknowledges', () => told.includes('\n') || errors !== '');
    await sleep(delay);
  } finally {
    await kill(child);
  }
  expect(errors).toBe('');
  const lines = told.split('\n').slice(0, -1).map(Number);
  return lines.at(-1) ?? 0;
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = once(child, 'close');
  child.kill('SIGKILL');
  await ended;
}
