/** When a program starts: not before the orchestrator serves its session, and never late. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ackFrame, inputFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import { place } from '../../support/agent.js';
import { AgentEnd } from '../../support/agent-terminal.js';
import { until } from '../../support/orch.js';

/** The process that starts the programs; the first session is needed for it to be there. */
async function hostPid(agent: AgentEnd): Promise<number> {
  await agent.exec(['true']).relay.ended();
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ');
  const found = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('terminal-host'));
  if (found === undefined) throw new Error('there is no such process');
  return Number(found);
}

/** Stopped until it is continued, or the test is over. */
function stop(pid: number): () => void {
  const go = () => void process.kill(pid, 'SIGCONT');
  process.kill(pid, 'SIGSTOP');
  onTestFinished(go);
  return go;
}

/** Resolves when whatever was started before has had its turn: a command that was asked for later has ended. */
const laterCommand = async (agent: AgentEnd): Promise<void> => {
  await agent.exec(['true']).relay.ended();
};

describe('a program', () => {
  it('waits for the first acknowledgement of the orchestrator, and loses none of the input that came with it', async () => {
    const agent = await AgentEnd.start();
    const file = join(place(), 'ran');
    const { id, relay } = agent.exec(['sh', '-c', `touch ${file}; cat`], { stdin: true }, null);
    expect((await agent.answer(id)).error).toBeNull();
    await until(() => relay.socket !== null, 'it has dialled');
    await laterCommand(agent);
    expect(existsSync(file)).toBe(false);
    relay.socket?.send(ackFrame(0, 1_000_000));
    const typed = Buffer.from('typed at once\n');
    relay.socket?.send(inputFrame(0, typed));
    relay.inputSent = typed.length;
    await relay.shows('typed at once');
    expect(existsSync(file)).toBe(true);
    agent.close(id);
    await agent.empty();
  });

  it('is never started when the orchestrator lets go of its session before', async () => {
    const agent = await AgentEnd.start();
    const file = join(place(), 'ran');
    const command = ['touch', file];
    const closed = agent.exec(command, {}, null);
    await agent.answer(closed.id);
    agent.close(closed.id);
    const cut = agent.exec(command, {}, null);
    await until(() => cut.relay.socket !== null, 'it has dialled');
    cut.relay.socket?.close(TERMINAL_CLOSE.unknown);
    await until(() => agent.terminals.list().sessions.length === 0, 'both are forgotten');
    await laterCommand(agent);
    expect(existsSync(file)).toBe(false);
    expect(agent.authLog.filter((line) => line.includes(closed.id) || line.includes(cut.id))).toEqual([]);
  });

  it('is not started after its time, and the orchestrator learns that it is gone', async () => {
    const agent = await AgentEnd.start(place(), { startWithin: 300 });
    const file = join(place(), 'ran');
    // Its time may be over before it has dialled.
    const { id, relay } = agent.exec(['touch', file], {}, null);
    await agent.empty();
    relay.socket?.send(ackFrame(0, 1_000_000));
    expect(agent.reports.at(-1)).toEqual({ type: 'terminals', sessions: [] });
    await agent.answer(id);
    expect(relay.exit).toBeNull();
    expect(existsSync(file)).toBe(false);
  });

  it('is not started by a process that was stopped while the orchestrator gave up', async () => {
    const agent = await AgentEnd.start();
    const file = join(place(), 'ran');
    const go = stop(await hostPid(agent));
    const { id } = agent.exec(['touch', file]);
    // As the orchestrator does when no answer comes.
    agent.close(id);
    go();
    await agent.empty();
    await laterCommand(agent);
    expect(existsSync(file)).toBe(false);
  });

  it('is not started by a process that was stopped between its acknowledgement and the end of its session', async () => {
    const agent = await AgentEnd.start();
    const file = join(place(), 'ran');
    const pid = await hostPid(agent);
    const { id, relay } = agent.exec(['touch', file], {}, null);
    await until(() => relay.socket !== null, 'it has dialled');
    await agent.answer(id);
    const go = stop(pid);
    relay.socket?.send(ackFrame(0, 1_000_000));
    relay.socket?.close(TERMINAL_CLOSE.done);
    agent.close(id);
    // Sent bytes are in the buffers of the system once the event loop has written them.
    await new Promise((resolve) => setImmediate(resolve));
    go();
    await agent.empty();
    await laterCommand(agent);
    expect(existsSync(file)).toBe(false);
  });

  it('that the system does not let start ends as failed, with the reason in its output', async () => {
    const agent = await AgentEnd.start();
    // More than the system takes in one argument list.
    const words = Array.from({ length: 40 }, () => 'x'.repeat(100_000));
    const { id, relay } = agent.exec(['true', ...words]);
    expect((await agent.answer(id)).error).toBeNull();
    expect(await relay.ended()).toMatchObject({ code: null, signal: null, reason: 'failed' });
    expect(relay.text('err')).toContain('orch: the program did not start: ');
    await agent.empty();
  });
});
