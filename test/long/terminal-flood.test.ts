/** Floods of output: every byte arrives, memory stays flat whoever stops reading, and another session is still answered. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { openSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { TerminalSession } from '../../src/contract/terminal.js';
import { MEBIBYTE, residentOf, watchMemory } from '../support/long.js';
import { until } from '../support/orch.js';
import { NODE_NAME, TerminalClient, TerminalFleet } from '../support/terminal-fleet.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
/** A gigabyte takes minutes: ORCH_FLOOD_BYTES=1000000000. */
const BYTES = Number(process.env.ORCH_FLOOD_BYTES ?? 150_000_000);
/** How long whoever reads takes nothing, in milliseconds; longer than a peer may be silent. */
const STOPPED = Number(process.env.ORCH_FLOOD_STOPPED ?? 45_000);
/** Memory that the collector has not freed yet while a lot goes through, beyond the buffers that the protocol allows. */
const SLACK = 96 * MEBIBYTE;
const FLOOD = ['sh', '-c', `seq 1 999999999999 | head -c ${BYTES}`];

let fleet: TerminalFleet;
let expected: string;

beforeAll(async () => {
  fleet = await TerminalFleet.start({ serve: ['--terminal-transcript-max-bytes', `${3 * BYTES}`] });
  expected = await hashOf(spawn(FLOOD[0] as string, FLOOD.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] }));
  // The process of the terminals runs from now on.
  const first = await TerminalClient.exec(fleet, ['true']);
  await first.ended;
});
afterAll(() => fleet.dispose());

function hashOf(child: ChildProcess): Promise<string> {
  const hash = createHash('sha256');
  child.stdout?.on('data', (chunk: Buffer) => hash.update(chunk));
  return new Promise((resolve) => child.on('close', () => resolve(hash.digest('hex'))));
}

/** `orch exec` with the flood, its output to a pipe of the test or to nowhere. */
function flood(
  stdout: 'pipe' | number,
  command: readonly string[] = FLOOD,
): { child: ChildProcess; sha256: Promise<string> } {
  const child = spawn(process.execPath, [ORCH, 'exec', NODE_NAME, '--', ...command], {
    env: fleet.sandbox.env,
    stdio: ['ignore', stdout, 'inherit'],
  });
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  });
  return { child, sha256: hashOf(child) };
}

const newest = async (): Promise<TerminalSession> => {
  const [first] = await fleet.sandbox.json<TerminalSession[]>(['term', 'list', '--all', '--kind', 'exec']);
  if (first === undefined) throw new Error('there is a session');
  return first;
};

let latest = '';

/** Waits until output of a session flows that was not there before; gives its ID. */
async function flowing(): Promise<string> {
  let found = latest;
  await until(async () => {
    const { session_id, output_bytes } = await newest();
    found = session_id;
    return session_id !== latest && output_bytes !== 0;
  }, 'it flows');
  latest = found;
  return found;
}

const outputOf = async (id: string): Promise<number> => (await fleet.session(id)).output_bytes ?? 0;

/** Waits until no more of it arrives. */
async function standsStill(id: string): Promise<number> {
  let before = -1;
  let now = await outputOf(id);
  for (let round = 0; round < 100 && now !== before; round += 1) {
    before = now;
    await pause(1_500);
    now = await outputOf(id);
  }
  expect(now).toBe(before);
  return now;
}

const ours = (): readonly number[] => [fleet.serverPid, fleet.agentPid, fleet.hostPid];

/** Memory of the three programs and of one more, from now until `check`. */
function memory(more: readonly number[] = []) {
  const pids = [...ours(), ...more];
  const before = pids.map(residentOf);
  const watch = watchMemory(pids);
  onTestFinished(() => void watch.stop());
  return {
    check: (what: string): void => {
      const highest = watch.stop();
      const shown = highest.map((bytes, index) => `${mebibytes(before[index] ?? 0)} -> ${mebibytes(bytes)}`);
      process.stderr.write(`${what}: orchestrator, agent, terminal host, client: ${shown.join(', ')} MiB\n`);
      for (const [index, bytes] of highest.entries()) expect(bytes).toBeLessThan((before[index] ?? 0) + SLACK);
    },
  };
}

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

const mebibytes = (bytes: number): string => (bytes / MEBIBYTE).toFixed(0);

/** Keys into a program that shows them: how long each took, in milliseconds. */
async function typing(keys: number): Promise<readonly number[]> {
  const one = await TerminalClient.echo(fleet);
  const times: number[] = [];
  for (let key = 0; key < keys; key += 1) {
    times.push(await one.echo('x'));
    await pause(10);
  }
  one.session.close();
  await one.ended;
  return times.sort((a, b) => a - b);
}

const at = (sorted: readonly number[], share: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0).toFixed(1);

function tell(what: string, times: readonly number[]): void {
  process.stderr.write(`keys ${what}: p50 ${at(times, 0.5)}, p99 ${at(times, 0.99)}, worst ${at(times, 1)} ms\n`);
}

describe.skipIf(process.platform !== 'linux')(`a flood of ${BYTES} bytes (needs Linux)`, () => {
  it('arrives whole at a fast reader, and in the transcript', async () => {
    const { child, sha256 } = flood('pipe');
    const start = performance.now();
    await flowing();
    const watched = memory([child.pid as number]);
    expect(await sha256).toBe(expected);
    const took = (performance.now() - start) / 1000;
    watched.check('a fast reader');
    process.stderr.write(`${(BYTES / MEBIBYTE / took).toFixed(1)} MiB/s\n`);
    await until(async () => (await newest()).status === 'closed', 'it is closed');
    const { session_id, recording } = await newest();
    expect(recording).toBe('complete');
    const transcript = spawn(process.execPath, [ORCH, 'term', 'transcript', session_id, '--format', 'raw'], {
      env: fleet.sandbox.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    expect(await hashOf(transcript)).toBe(expected);
  });

  it('waits for a client that is stopped for longer than a peer may be silent, and goes on', async () => {
    const { child, sha256 } = flood('pipe');
    const session_id = await flowing();
    child.kill('SIGSTOP');
    const watched = memory();
    const stood = await standsStill(session_id);
    tell('beside a client that is stopped', await typing(100));
    await pause(STOPPED);
    watched.check('a client that is stopped');
    expect(await outputOf(session_id)).toBe(stood);
    expect((await fleet.session(session_id)).status).toBe('active');
    child.kill('SIGCONT');
    expect(await sha256).toBe(expected);
  });

  it('waits for a pipe without a reader, without losing the connection, and goes on', async () => {
    const { child, sha256 } = flood('pipe');
    const session_id = await flowing();
    child.stdout?.pause();
    const watched = memory([child.pid as number]);
    const stood = await standsStill(session_id);
    tell('beside a pipe without a reader', await typing(100));
    await pause(STOPPED);
    watched.check('a pipe without a reader');
    expect(await outputOf(session_id)).toBe(stood);
    expect((await fleet.session(session_id)).writer).not.toBeNull();
    child.stdout?.resume();
    expect(await sha256).toBe(expected);
  });

  it('stops at ^S and goes on at ^Q', async () => {
    const one = await TerminalClient.running(fleet, `exec ${FLOOD.map(quoted).join(' ')}`);
    await until(() => one.received > 1_000_000, 'it flows');
    one.type('\x13');
    const watched = memory();
    const stood = await standsStill(one.id);
    await pause(3_000);
    watched.check('a terminal that is stopped');
    expect(await outputOf(one.id)).toBe(stood);
    one.type('\x11');
    expect(await one.ended).toMatchObject({ kind: 'exit', exit: { code: 0 }, complete: true });
    expect([one.snapshots, one.received, one.sha256]).toEqual([0, BYTES, expected]);
  });

  it('does not keep another session from being answered', async () => {
    tell('alone', await typing(300));
    const { child } = flood(openSync('/dev/null', 'w'), ['seq', '1', '999999999999']);
    await flowing();
    const times = await typing(300);
    expect(child.exitCode, 'the flood goes on').toBeNull();
    tell('beside a fast flood', times);
    child.kill('SIGTERM');
    await new Promise((resolve) => child.once('close', resolve));
  });
});
