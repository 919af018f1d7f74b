/** The agent is killed with sessions open: its shells end, its sessions are interrupted, and what has become a daemon lives on. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { until } from '../support/orch.js';
import { commandLine, NODE_NAME, TerminalClient, TerminalFleet } from '../support/terminal-fleet.js';

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));

let fleet: TerminalFleet;

beforeAll(async () => {
  fleet = await TerminalFleet.start();
});
afterAll(() => fleet.dispose());

/** The process ID that the program prints. */
async function pidOf(one: TerminalClient): Promise<number> {
  await until(() => /pid=(\d+)=/.test(one.text), 'it says its process id');
  return Number(/pid=(\d+)=/.exec(one.text)?.[1]);
}

const isAlive = (pid: number): boolean => {
  if (!existsSync(`/proc/${pid}`)) return false;
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

/** Descriptors of a process that a program without any of ours would not have. */
const foreign = (pid: number): readonly string[] =>
  readdirSync(`/proc/${pid}/fd`).filter((name) => Number(name) > 2 && name !== '255');

it.each([
  ['the agent', () => [fleet.agentPid]],
  ['its process of terminals', () => [fleet.hostPid]],
  ['both at once', () => [fleet.agentPid, fleet.hostPid]],
])('%s is killed', async (what, victims) => {
  const shell = await TerminalClient.running(fleet, 'echo pid=$$=; exec sleep 1000');
  const parent = await TerminalClient.running(
    fleet,
    "setsid sh -c 'echo daemon=$$=; exec sleep 1000' < /dev/null & sleep 0.5; echo pid=$$=; cat",
  );
  const exec = await TerminalClient.exec(fleet, ['sh', '-c', 'echo pid=$$=; sleep 1000; true']);
  const cli = spawn(process.execPath, [ORCH, 'exec', NODE_NAME, '--', 'sleep', '1000'], {
    env: fleet.sandbox.env,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const status = new Promise<number | null>((resolve) => cli.on('close', resolve));
  const all = [shell, parent, exec];
  const pids = await Promise.all(all.map(pidOf));
  const daemon = Number(/daemon=(\d+)=/.exec(parent.text)?.[1]);
  onTestFinished(() => {
    if (isAlive(daemon)) process.kill(daemon, 'SIGKILL');
    cli.kill('SIGKILL');
  });
  await until(async () => (await fleet.sandbox.json<unknown[]>(['term', 'list'])).length === 4, 'all four are open');
  for (const pid of [...pids, daemon]) expect(foreign(pid), commandLine(pid)).toEqual([]);

  const { agent } = fleet;
  const isAgentKilled = victims().includes(fleet.agentPid);
  for (const pid of victims()) process.kill(pid, 'SIGKILL');
  const start = performance.now();
  const areGone = () => until(() => !pids.some(isAlive), 'their programs are gone');
  if (what === 'the agent') {
    await areGone();
    process.stderr.write(`all shells are gone after ${(performance.now() - start).toFixed(0)} ms\n`);
  }
  if (isAgentKilled) {
    await agent.stop('SIGKILL');
    for (const { id } of all) expect((await fleet.session(id)).status).toBe('active');
    fleet.startAgent();
  }
  await areGone();
  for (const one of all) {
    expect(await one.ended).toMatchObject({ kind: 'exit', exit: { code: null, reason: 'agent_lost' } });
    expect(await fleet.session(one.id)).toMatchObject({ status: 'interrupted', reason: 'agent_lost' });
  }
  expect(await status).toBe(255);
  expect(isAlive(daemon)).toBe(true);
  await fleet.connected();
  const next = await TerminalClient.exec(fleet, ['echo', 'again']);
  expect(await next.ended).toMatchObject({ kind: 'exit', exit: { code: 0 } });
});
