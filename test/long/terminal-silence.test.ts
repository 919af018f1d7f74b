/** Connections that fall silent without ending, on each hop, and an operator's machine that sleeps: found out, resumed, nothing lost. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Cable, hashOfFirst, holds } from '../support/long.js';
import { Pty } from '../support/pty.js';
import { childrenOf, commandLine, NODE_NAME, TerminalClient, TerminalFleet } from '../support/terminal-fleet.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
/** Both ends give a silent peer up after 35 s, and look each second; then there are pauses, tickets and dials. Milliseconds. */
const FOUND_OUT = 120_000;
const FLOOD = 'exec seq 1 999999999999';

let fleet: TerminalFleet;

beforeAll(async () => {
  fleet = await TerminalFleet.start({ serve: ['--terminal-transcript-max-bytes', '100000000000'] });
});
afterAll(() => fleet.dispose());

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe.each<[string, () => Cable]>([
  ['the operator and the orchestrator', () => fleet.operatorCable],
  ['the agent and the orchestrator', () => fleet.agentCable],
])('between %s', (_between, cable) => {
  it('a silent connection is found out, and everything goes on behind its last byte', async () => {
    const flood = await TerminalClient.exec(fleet, ['sh', '-c', FLOOD]);
    const echo = await TerminalClient.echo(fleet);
    await holds(() => flood.received > 1_000_000, 60_000, 'it flows');
    let typed = '';
    const type = () => {
      const line = `${typed.length}\n`;
      typed += line;
      echo.type(line);
    };
    for (let key = 0; key < 50; key += 1) type();
    cable().silence();
    // On their way, or sent into the void: all of them have to come once.
    for (let key = 0; key < 200; key += 1) {
      type();
      await pause(5);
    }
    const start = performance.now();
    const { received } = flood;
    await holds(() => echo.received === typed.length, FOUND_OUT, 'the keys are shown');
    await holds(() => flood.received > received + 4_000_000, FOUND_OUT, 'the flood goes on');
    process.stderr.write(`everything again after ${((performance.now() - start) / 1000).toFixed(1)} s\n`);
    expect(echo.sha256).toBe(sha256(typed));
    for (const one of [flood, echo]) {
      expect((await fleet.session(one.id)).status).toBe('active');
      one.session.close();
      expect(await one.ended).toMatchObject({ kind: 'exit', exit: { reason: 'closed' }, complete: true });
      expect(one.snapshots).toBe(0);
    }
    expect(flood.sha256).toBe(await hashOfFirst(flood.received, ['sh', '-c', FLOOD]));
    await holds(() => childrenOf(fleet.hostPid).length === 0, 30_000, 'nothing of them runs');
  });
});

describe('an operator whose machine sleeps', () => {
  it('gets the rest of a command that ran on', async () => {
    const bytes = 30_000_000;
    const script = `seq 1 999999999999 | head -c ${bytes}`;
    const child = spawn(process.execPath, [ORCH, 'exec', NODE_NAME, '--', 'sh', '-c', script], {
      env: fleet.sandbox.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    });
    const hash = createHash('sha256');
    let received = 0;
    child.stdout.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      received += chunk.length;
    });
    await holds(() => received > 100_000, 60_000, 'it flows');
    child.kill('SIGSTOP');
    await holds(async () => (await writerOf('exec')) === null, FOUND_OUT, 'the orchestrator has given it up');
    child.kill('SIGCONT');
    const status = await new Promise((resolve) => child.on('close', resolve));
    expect([status, received, hash.digest('hex')]).toEqual([
      0,
      bytes,
      await hashOfFirst(bytes, ['sh', '-c', 'exec seq 1 999999999999']),
    ]);
  });

  it('finds a shell as it went on, with every line once, and what was typed in the sleep', async () => {
    const pty = new Pty([process.execPath, ORCH, 'term', NODE_NAME], {
      env: fleet.sandbox.env,
      cwd: fleet.sandbox.root,
    });
    onTestFinished(() => pty.kill());
    await pty.shows(/[$#] $/);
    pty.write(
      'i=0; while [ $i -lt 600 ]; do i=$((i + 1)); echo "line $i;"; sleep 0.1; done; read x; echo "<$x>"; exit 5\r',
    );
    await pty.shows(/line 20;/);
    expect(commandLine(pty.pid)).toContain('term');
    process.kill(pty.pid, 'SIGSTOP');
    await holds(async () => (await writerOf('shell')) === null, FOUND_OUT, 'the orchestrator has given it up');
    pty.write('typed asleep\r');
    process.kill(pty.pid, 'SIGCONT');
    await holds(() => /<typed asleep>/.test(pty.output), FOUND_OUT, 'it goes on to its end');
    expect(await pty.ended()).toBe(5);
    const lines = [...pty.output.matchAll(/line (\d+);/g)].map(([, number]) => Number(number));
    expect(lines).toEqual(Array.from({ length: 600 }, (_, index) => index + 1));
  });
});

/** Who types in the one session of that kind that is open. */
async function writerOf(kind: 'shell' | 'exec'): Promise<string | null> {
  const open = await fleet.api.call('listTerminals', { query: { kind, status: 'active' } });
  expect(open).toHaveLength(1);
  return open[0]?.writer ?? null;
}
