/** Terminals of a whole agent: over its link, and when it is stopped or killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { processEntry } from '../../../src/agent/pty/process-table.js';
import { CLOSE } from '../../../src/wire/limits.js';
import { place, type ScriptedOrchestrator } from '../../support/agent.js';
import { OrchestratorEnd, Relay, sessionId } from '../../support/agent-terminal.js';
import { until } from '../../support/orch.js';
import { TEST_SHELL } from '../../support/test-shell.js';

const program = fileURLToPath(new URL('./programs/agent.mjs', import.meta.url));
const bundled = fileURLToPath(new URL('../../../dist/orch/orch.js', import.meta.url));

interface Started {
  readonly orchestrator: OrchestratorEnd;
  readonly child: ChildProcess;
  readonly dataDir: string;
}

function run(orchestrator: OrchestratorEnd, dataDir: string, isBundled = false): ChildProcess {
  const [place, key] = [`127.0.0.1:${orchestrator.port}`, orchestrator.identity.publicKey];
  const config = join(dataDir, 'agent.yaml');
  const args = isBundled
    ? [bundled, 'agent', 'connect', place, '--orchestrator-key', key, '--data-dir', dataDir, '--config', config]
    : [program, place, key, dataDir];
  const child = spawn(process.execPath, args, { stdio: 'ignore', env: { ...process.env, ORCH_TEST_CANARY: 'secret' } });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function start({ enabled = true, isBundled = false } = {}): Promise<Started> {
  const orchestrator = await new OrchestratorEnd().start();
  const dataDir = place();
  writeFileSync(join(dataDir, 'agent.yaml'), `remote_terminal:\n  enabled: ${enabled}\n  shell: ${TEST_SHELL}\n`, {
    mode: 0o600,
  });
  return { orchestrator, child: run(orchestrator, dataDir, isBundled), dataDir };
}

async function link(orchestrator: OrchestratorEnd, number = 1): Promise<ScriptedOrchestrator> {
  await until(() => orchestrator.links.length >= number, 'the agent connects');
  return orchestrator.links[number - 1] as ScriptedOrchestrator;
}

async function open(orchestrator: OrchestratorEnd, scripted: ScriptedOrchestrator, number: number): Promise<Relay> {
  const relay = new Relay();
  orchestrator.relays.set(sessionId(number), relay);
  scripted.say({
    type: 'terminal_open',
    session_id: sessionId(number),
    ticket: orchestrator.ticket(),
    operator: 'ada',
    kind: 'shell',
    cols: 80,
    rows: 24,
    term: 'xterm',
    shell: null,
    command: null,
    timeout_secs: null,
    stdin: false,
  });
  return relay;
}

async function shellPid(relay: Relay): Promise<number> {
  relay.type("stty -echo; printf 'me=%s=\n' $$\n");
  await until(() => /me=\d+=/.test(relay.text()), 'the shell is there');
  return Number(/me=(\d+)=/.exec(relay.text())?.[1]);
}

const isAlive = (pid: number): boolean => ![undefined, 'Z'].includes(processEntry(pid)?.state);
const ended = (child: ChildProcess): Promise<void> =>
  until(() => child.exitCode !== null || child.signalCode !== null, 'the agent has ended');

describe('an agent', () => {
  it('tells of its sessions at each approval, opens some, and ends them when it stops', async () => {
    const { orchestrator, child } = await start();
    const first = await link(orchestrator);
    await first.approve();
    expect((await first.next('terminals')).sessions).toEqual([]);
    const relay = await open(orchestrator, first, 1);
    expect(await first.next('terminal_answer')).toMatchObject({ session_id: sessionId(1), error: null });
    const pid = await shellPid(relay);
    first.socket.terminate();
    const second = await link(orchestrator, 2);
    await second.approve();
    expect((await second.next('terminals')).sessions).toEqual([{ session_id: sessionId(1), attached: true }]);
    relay.type('echo still $((1 + 1))\n');
    await relay.shows('still 2');
    relay.type('tr "\\0" "\\n" < /proc/$PPID/environ; echo done $((1 + 1))\n');
    await relay.shows('done 2');
    expect(relay.text()).not.toContain('secret');
    child.kill('SIGTERM');
    expect(await relay.ended()).toMatchObject({ reason: 'agent_stopped' });
    await ended(child);
    expect(child.exitCode).toBe(0);
    expect(isAlive(pid)).toBe(false);
  });

  it('opens terminals as it is bundled', async () => {
    const { orchestrator } = await start({ isBundled: true });
    const scripted = await link(orchestrator);
    await scripted.approve();
    const relay = await open(orchestrator, scripted, 1);
    expect(await scripted.next('terminal_answer')).toMatchObject({ error: null });
    relay.type('exit 12\n');
    expect(await relay.ended()).toMatchObject({ code: 12 });
  });

  it('refuses while its machine does not allow it', async () => {
    const { orchestrator } = await start({ enabled: false });
    const scripted = await link(orchestrator);
    await scripted.approve();
    await open(orchestrator, scripted, 1);
    expect((await scripted.next('terminal_answer')).error).toMatchObject({ code: 'terminal_disabled' });
  });

  it('ends its sessions when it is rejected', async () => {
    const { orchestrator } = await start();
    const scripted = await link(orchestrator);
    await scripted.approve();
    const pid = await shellPid(await open(orchestrator, scripted, 1));
    scripted.socket.close(CLOSE.rejected, 'rejected');
    await until(() => !isAlive(pid), 'the shell has ended');
  });

  it('leaves no shell when it is killed', async () => {
    const { orchestrator, child, dataDir } = await start();
    const scripted = await link(orchestrator);
    await scripted.approve();
    const relays = await Promise.all([1, 2, 3].map((number) => open(orchestrator, scripted, number)));
    const pids = await Promise.all(relays.map(shellPid));
    relays[1]?.type('trap "" HUP; sleep 306 &\n');
    expect(pids.every(isAlive)).toBe(true);
    child.kill('SIGKILL');
    await until(() => !pids.some(isAlive), 'the shells have ended');
    run(orchestrator, dataDir);
    const next = await link(orchestrator, 2);
    await next.approve();
    expect((await next.next('terminals')).sessions).toEqual([]);
  });
});
