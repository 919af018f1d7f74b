/** How sessions end that do not end by themselves. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { processEntry } from '../../../src/agent/pty/process-table.js';
import { killSurvivors, writeLiveSessions } from '../../../src/agent/terminal/survivors.js';
import { signalFrame } from '../../../src/terminal/frames.js';
import { place } from '../../support/agent.js';
import { startPty } from '../../support/agent-pty.js';
import { AgentEnd, type Relay } from '../../support/agent-terminal.js';
import { until } from '../../support/orch.js';

/** Starts it in the shell, where it says its process id. */
async function pidOf(relay: Relay, command: string): Promise<number> {
  const before = relay.text().length;
  relay.type(`${command} & printf 'pid=%s=\n' $!\n`);
  await until(() => /pid=(\d+)=/.test(relay.text().slice(before)), 'it has started');
  const pid = Number(/pid=(\d+)=/.exec(relay.text().slice(before))?.[1]);
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  return pid;
}

const isAlive = (pid: number): boolean => ![undefined, 'Z'].includes(processEntry(pid)?.state);

const gone = (...pids: readonly number[]): Promise<void> =>
  until(() => !pids.some(isAlive), `${pids.filter(isAlive)} are gone`);

async function shellOf(agent: AgentEnd): Promise<{ id: string; relay: Relay; pid: number }> {
  const { id, relay } = agent.open();
  expect((await agent.answer(id)).error).toBeNull();
  relay.type("stty -echo; printf 'me=%s=\n' $$\n");
  await until(() => /me=\d+=/.test(relay.text()), 'the shell is there');
  return { id, relay, pid: Number(/me=(\d+)=/.exec(relay.text())?.[1]) };
}

function hostPid(): number {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ');
  const found = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('terminal-host'));
  if (found === undefined) throw new Error('there is no such process');
  return Number(found);
}

describe('a session', () => {
  it('that the orchestrator closes hangs up: its programs end, and it is forgotten', async () => {
    const agent = await AgentEnd.start();
    const { id, relay, pid } = await shellOf(agent);
    const job = await pidOf(relay, 'sleep 300');
    agent.close(id);
    await gone(pid, job);
    await agent.empty();
    expect(relay.exit).toBeNull();
    expect(existsSync(join(agent.dataDir, 'terminals.json'))).toBe(false);
  });

  it('is killed when it does not want to end; what has left it stays', async () => {
    const agent = await AgentEnd.start();
    const { id, relay } = await shellOf(agent);
    const stubborn = await pidOf(relay, 'sh -c "trap \\"\\" HUP TERM; while :; do sleep 1; done"');
    const file = join(place(), 'daemon');
    relay.type(`setsid -f sh -c 'echo $$ > ${file}; exec sleep 301' < /dev/null\n`);
    await until(() => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'), 'the daemon is there');
    const spared = Number(readFileSync(file, 'utf8'));
    onTestFinished(() => {
      if (isAlive(spared)) process.kill(spared, 'SIGKILL');
    });
    agent.close(id);
    await gone(stubborn);
    await agent.empty();
    expect(isAlive(spared)).toBe(true);
  });

  it('may be closed before it has begun', async () => {
    const agent = await AgentEnd.start();
    const first = agent.open();
    agent.close(first.id);
    const second = agent.exec(['sleep', '307']);
    await new Promise((resolve) => setImmediate(resolve));
    agent.close(second.id);
    await agent.empty();
    expect(first.relay.sockets).toEqual([]);
  });

  it('ends when remote terminals are turned off, and the orchestrator learns it', async () => {
    const agent = await AgentEnd.start();
    const { relay, pid } = await shellOf(agent);
    agent.settings = { ...agent.settings, 'remote_terminal.enabled': false };
    agent.terminals.configure();
    expect(await relay.ended()).toMatchObject({ reason: 'disabled', final_offset: relay.received });
    await gone(pid);
    await agent.empty();
    const { id } = agent.open();
    expect((await agent.answer(id)).error).toMatchObject({ code: 'terminal_disabled' });
  });

  it('ends when the orchestrator turns the agent away', async () => {
    const agent = await AgentEnd.start();
    const { pid } = await shellOf(agent);
    agent.terminals.closeAll();
    await gone(pid);
    await agent.empty();
  });

  it('ends with the agent, which says so after the last output', async () => {
    const agent = await AgentEnd.start();
    const { relay, pid } = await shellOf(agent);
    relay.type("trap 'echo bye; exit 3' HUP\n");
    const flood = agent.open();
    flood.relay.type('exec yes\n');
    await until(() => flood.relay.received > 1_000_000, 'it flows');
    await agent.terminals.stop();
    expect(await relay.ended()).toMatchObject({ reason: 'agent_stopped', final_offset: relay.received });
    expect(await flood.relay.ended()).toMatchObject({ reason: 'agent_stopped', final_offset: flood.relay.received });
    expect(isAlive(pid)).toBe(false);
    expect(agent.terminals.list().sessions).toEqual([]);
  });

  it('does not hold up the agent when the orchestrator says nothing', async () => {
    const agent = await AgentEnd.start();
    const { relay, pid } = await shellOf(agent);
    await pidOf(relay, 'sh -c "trap \\"\\" HUP TERM; while :; do sleep 1; done"');
    relay.socket?.stopReading();
    await agent.terminals.stop();
    expect(isAlive(pid)).toBe(false);
  });

  it('counts no more once its program has ended', async () => {
    const agent = await AgentEnd.start();
    agent.settings = { ...agent.settings, 'remote_terminal.max_sessions': 1 };
    const { relay } = await shellOf(agent);
    const refused = agent.open();
    expect((await agent.answer(refused.id)).error).toMatchObject({ code: 'terminal_limit' });
    relay.closes = false;
    relay.type('exit\n');
    await relay.ended();
    const next = agent.open();
    expect((await agent.answer(next.id)).error).toBeNull();
  });
});

describe('the process of the terminals', () => {
  it('is started by the first session, and ends when it has none for a while', async () => {
    const agent = await AgentEnd.start(place(), { idleAfter: 50 });
    expect(() => hostPid()).toThrow();
    const { relay } = await shellOf(agent);
    const pid = hostPid();
    relay.type('exit\n');
    await agent.empty();
    await gone(pid);
    await shellOf(agent);
    expect(hostPid()).not.toBe(pid);
  });

  it('may be killed: the orchestrator learns which sessions are left, and their programs end', async () => {
    const agent = await AgentEnd.start();
    const { relay, pid } = await shellOf(agent);
    const job = await pidOf(relay, 'sh -c "trap \\"\\" HUP TERM; while :; do sleep 1; done"');
    const command = agent.exec(['sleep', '303']);
    await agent.answer(command.id);
    process.kill(hostPid(), 'SIGKILL');
    await until(
      () => agent.reports.some((one) => one.type === 'terminals' && one.sessions.length === 0),
      'it is reported',
    );
    await gone(pid, job);
    const { relay: next } = await shellOf(agent);
    next.socket?.send(signalFrame('HUP'));
  });
});

describe('programs of an agent that was killed', () => {
  it('are ended by the next one, except process IDs that now belong to other programs', async () => {
    const dataDir = place();
    const left = startPty('trap "" HUP; echo up; while :; do sleep 1; done');
    const foreign = startPty('echo up; exec sleep 304');
    await Promise.all([left.shows('up'), foreign.shows('up')]);
    const { mark } = foreign.program;
    writeLiveSessions(
      dataDir,
      new Map([
        ['one', left.program.mark],
        ['two', { ...mark, startTime: (mark.startTime ?? 0) - 1 }],
        ['three', { ...mark, tty: mark.tty + 1 }],
      ]),
    );
    expect(killSurvivors(dataDir)).toBe(1);
    await gone(left.program.mark.pid);
    expect(isAlive(mark.pid)).toBe(true);
    expect(killSurvivors(dataDir)).toBe(0);
    foreign.program.signal('KILL');
    await foreign.whenEnded;
  });

  it('are not looked for after another start of the machine, or when the list is torn', async () => {
    const dataDir = place();
    const running = startPty('echo up; exec sleep 305');
    await running.shows('up');
    writeLiveSessions(dataDir, new Map([['one', running.program.mark]]));
    const file = join(dataDir, 'terminals.json');
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace(/"boot_id":"[^"]*"/, '"boot_id":"another"'));
    expect(killSurvivors(dataDir)).toBe(0);
    writeFileSync(file, text.slice(0, 40));
    expect(killSurvivors(dataDir)).toBe(0);
    expect(isAlive(running.program.mark.pid)).toBe(true);
    running.program.signal('KILL');
    await running.whenEnded;
  });
});
