/** The orchestrator is killed again and again while output and input flow: nothing is lost, nothing comes twice. */
import { spawn } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { hashOfFirst, holds } from '../support/long.js';
import { until } from '../support/orch.js';
import { TerminalClient, TerminalFleet } from '../support/terminal-fleet.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
const KILLS = Number(process.env.ORCH_LONG_KILLS ?? 12);
const FLOOD = 'exec seq 1 999999999999';
const DRIP = 'i=0; while :; do i=$((i + 1)); echo "line $i, ünï 🦊"; sleep 0.02; done';

let fleet: TerminalFleet;

beforeAll(async () => {
  fleet = await TerminalFleet.start({ serve: ['--terminal-transcript-max-bytes', '100000000000'] });
});
afterAll(() => fleet.dispose());

/** Of the whole transcript as it can be downloaded. */
function transcriptOf(id: string): Promise<{ readonly sha256: string; readonly bytes: number }> {
  const hash = createHash('sha256');
  let bytes = 0;
  const child = spawn(process.execPath, [ORCH, 'term', 'transcript', id, '--format', 'raw'], {
    env: fleet.sandbox.env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  return new Promise((resolve) => child.on('close', () => resolve({ sha256: hash.digest('hex'), bytes })));
}

/** Types numbers, one a line, into a program that shows what it reads; what it has to show. */
function typist(one: TerminalClient): { stop(): string } {
  let typed = '';
  let number = 0;
  const timer = setInterval(() => {
    number += 1;
    typed += `${number}\n`;
    one.type(`${number}\n`);
  }, 20);
  return {
    stop: () => {
      clearInterval(timer);
      return typed;
    },
  };
}

it(`survives ${KILLS} kills of the orchestrator`, async () => {
  const flood = await TerminalClient.exec(fleet, ['sh', '-c', FLOOD]);
  const drip = await TerminalClient.exec(fleet, ['sh', '-c', DRIP]);
  const shell = await TerminalClient.running(fleet, `exec sh -c '${DRIP}'`);
  const echo = await TerminalClient.echo(fleet);
  const typing = typist(echo);
  const all = { flood, drip, shell, echo };

  const back: number[] = [];
  for (let round = 0; round < KILLS; round += 1) {
    await pause(randomInt(100, 2_500));
    await fleet.killServer();
    const start = performance.now();
    for (const [name, { session }] of Object.entries(all)) {
      expect((await fleet.session(session.sessionId)).status, `${name} in round ${round}`).toBe('active');
    }
    for (const [name, one] of Object.entries(all)) {
      const { received } = one;
      await holds(() => one.received > received, 120_000, `${name} goes on in round ${round}`);
    }
    back.push(performance.now() - start);
  }
  process.stderr.write(`output again after ${back.map((ms) => (ms / 1000).toFixed(1)).join(', ')} s\n`);

  const typed = typing.stop();
  await holds(() => echo.received >= typed.length, 60_000, 'all keys are shown');
  expect(echo.sha256).toBe(createHash('sha256').update(typed).digest('hex'));
  for (const one of [flood, drip, shell, echo]) one.session.close();
  for (const one of [flood, drip, shell, echo]) {
    expect(await one.ended).toMatchObject({ kind: 'exit', exit: { reason: 'closed' }, complete: true });
    expect(one.snapshots).toBe(0);
    await until(async () => (await fleet.session(one.id)).recording === 'complete', 'its recording is closed');
    expect(await fleet.session(one.id)).toMatchObject({ status: 'closed' });
  }
  for (const [one, script] of [
    [flood, FLOOD],
    [drip, DRIP.replace('sleep 0.02', ':')],
    [shell, DRIP.replace('sleep 0.02', ':')],
  ] as const) {
    const { received, sha256 } = one;
    process.stderr.write(`${received} bytes\n`);
    expect(sha256).toBe(await hashOfFirst(received, ['sh', '-c', script]));
  }
  for (const one of [flood, drip]) {
    expect(await transcriptOf(one.id)).toEqual({ bytes: one.received, sha256: one.sha256 });
  }
});
