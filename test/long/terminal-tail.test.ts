/** A thousand short commands on terminals: not one byte at their ends is lost. */
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startPty } from '../support/agent-pty.js';

const ROUNDS = Number(process.env.ORCH_LONG_ROUNDS ?? 1_000);
const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

it(`shows all of ${ROUNDS} commands`, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'orch-tail-'));
  const file = join(directory, 'text');
  let lost = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const size = Math.round(1_000 * 1_000 ** (randomInt(1_000) / 1_000));
    const text = Buffer.from(randomBytes(size).toString('base64').slice(0, size));
    writeFileSync(file, text);
    const running = startPty(`exec cat '${file}'`);
    await running.whenEnded;
    if (sha(running.bytes()) !== sha(text)) lost += 1;
  }
  rmSync(directory, { recursive: true, force: true });
  console.log(`${lost} of ${ROUNDS} commands lost output`);
  expect(lost).toBe(0);
});
