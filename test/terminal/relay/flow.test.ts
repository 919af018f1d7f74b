/** How much output may be on its way, and what becomes of a recording that cannot go on. */

import { describe, expect, it } from 'vitest';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import { FakeClient, Room } from '../../support/relay.js';
import { outputFrame } from '../../support/terminal-server.js';
import { until } from '../../support/until.js';

const MIB = 1024 * 1024;
const { mostWindow } = TERMINAL_LIMITS;

describe('the credit of an agent', () => {
  it('is what the one who writes takes, however much there is', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url, { acks: false });
    await client.welcomed();
    const session = await room.agent.attached(id);
    room.agent.write(id, Buffer.alloc(16 * MIB, 'x'));
    await until(() => client.received >= 128 * 1024, 'the first window is used up');
    expect(session.sent).toBeLessThanOrEqual(256 * 1024);
    expect(client.received).toBeLessThanOrEqual(256 * 1024);
    // A window that is far too large counts as the largest.
    client.ack(100 * MIB);
    await until(() => client.received >= mostWindow, 'the next window is used up');
    expect(session.sent).toBeLessThanOrEqual(mostWindow + 256 * 1024);
    client.acks = true;
    client.ack();
    await until(() => client.received === 16 * MIB, 'all of it has come');
  });

  it('lets a shell run on without an attached client, and records all of it', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    await client.welcomed();
    await room.agent.attached(id);
    client.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'no client is attached');
    room.agent.write(id, Buffer.alloc(12 * MIB, 'build output\r\n'));
    await until(() => (room.agent.sessions.get(id)?.forgotten ?? 0) >= 12 * MIB, 'the agent may forget all of it');
    expect((await room.call('GET', `/terminal/session/${id}`)).json.output_bytes).toBe(12 * MIB);
  });

  it('that is not kept to costs the agent its socket', async () => {
    const room = await Room.start();
    const { id } = await room.openShell();
    const session = await room.agent.attached(id);
    for (let offset = 0; offset < 8 * MIB; offset += 65_536) {
      session.socket?.send(outputFrame('out', offset, Buffer.alloc(65_536)));
    }
    await until(() => session.closed !== null, 'it was closed');
    expect(session.closed?.code).toBe(4429);
  });
});

describe('a recording that is full', () => {
  it('is reported, and the session goes on', async () => {
    const room = await Room.start({ maxBytes: 65_536 });
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    await client.welcomed();
    await room.agent.attached(id);
    room.agent.write(id, Buffer.alloc(MIB, 'x'));
    expect(await client.noted('recording')).toMatchObject({ recorded: false });
    await until(() => client.received === MIB, 'all of it came');
    room.agent.write(id, 'still here');
    await client.shows('still here');
    expect(await room.get(id)).toMatchObject({ recording: 'truncated', status: 'active' });
    room.agent.end(id);
    await client.ended();
    expect(await room.get(id)).toMatchObject({ recording: 'truncated', status: 'closed' });
  });

  it('ends a session that has to be recorded', async () => {
    const room = await Room.start({ maxBytes: 65_536, rules: { record: 'required' } });
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    await client.welcomed();
    await room.agent.attached(id);
    room.agent.write(id, Buffer.alloc(MIB, 'x'));
    await client.ended();
    expect(client.exit).toMatchObject({ reason: 'recording_failed' });
    expect(await room.get(id)).toMatchObject({ status: 'closed', reason: 'recording_failed', recording: 'truncated' });
  });

  it('does not end a command, of which it goes on with sizes and hashes', async () => {
    const room = await Room.start({ maxBytes: 65_536, rules: { record: 'required', recordCommands: 'all' } });
    const { id, url } = await room.exec({ command: ['cat'] });
    const client = await FakeClient.open(url);
    await client.welcomed();
    await room.agent.attached(id);
    room.agent.write(id, Buffer.alloc(MIB, 'x'));
    await until(() => client.output.length === MIB, 'all has come');
    room.agent.end(id, { code: 0, signal: null, reason: 'exited' });
    await client.ended();
    expect(client.exit).toMatchObject({ reason: 'exited', code: 0, final_offset: MIB });
    expect(await room.get(id)).toMatchObject({ status: 'closed', reason: 'exited', recording: 'truncated' });
    const { text } = await room.call('GET', `/terminal/session/${id}/transcript`);
    expect(text).toContain('only sizes and hashes of further output follow');
    expect(text.length).toBeLessThan(300_000);
  });

  it('on a full disk cannot begin: the session does not either when it has to be recorded', async () => {
    const room = await Room.start({ minFreeBytes: 2 ** 60, rules: { record: 'required' } });
    const refused = await room.call('POST', `/terminal/${room.node}`);
    expect(refused.json).toMatchObject({ status: 507, code: 'recording_failed' });
    expect(room.agent.messages.at(-1)).toMatchObject({ type: 'terminal_close' });
    room.rules = { ...room.rules, record: 'best_effort' };
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    expect(await client.welcomed()).toMatchObject({ recorded: false });
    expect(await room.get(id)).toMatchObject({ recording: 'failed', transcript_path: null });
    expect((await room.call('GET', `/terminal/session/${id}/transcript`)).json.code).toBe('transcript_not_found');
  });
});
