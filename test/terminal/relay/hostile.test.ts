/** Hostile agents and operators lose their own socket, and disturb no other. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { markOperatorRemoved } from '../../../daemon/auth/operator-store.js';
import { Tickets } from '../../../daemon/terminal/tickets.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import { jsonFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_SUBPROTOCOL } from '../../../src/terminal/limits.js';
import { FakeClient, Room } from '../../support/relay.js';
import { until } from '../../support/until.js';

const OPERATOR = '0'.repeat(32);

async function withWriter(room: Room) {
  const { id, url } = await room.openShell();
  const writer = await FakeClient.open(url);
  await writer.welcomed();
  return { id, writer, session: await room.agent.attached(id) };
}

/** As the command that removes an operator does: the store first. */
async function removeOperator(room: Room): Promise<void> {
  await markOperatorRemoved(room.running.db, OPERATOR, { removed_at: Date.now(), removed_by: 'a'.repeat(32) });
  await room.terminals.operatorRemoved(OPERATOR);
}

async function openedSocket(url: string): Promise<WebSocket> {
  const socket = new WebSocket(url, TERMINAL_SUBPROTOCOL, { perMessageDeflate: false });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  return socket;
}

const closeOf = (socket: WebSocket): Promise<number> => new Promise((resolve) => socket.once('close', resolve));

async function ticketUrl(room: Room, id: string, as = 'operator'): Promise<string> {
  return (await room.call('POST', `/terminal/session/${id}/attach`, { mode: 'read' }, as)).json.ws_url;
}

describe('an agent', () => {
  it.each([{ kept_from: 1e300 }, { taken: 1e300 }, { produced: 2 ** 53 }, { kept_from: -1 }])(
    'that claims %j loses its socket, and the orchestrator goes on',
    async (claims) => {
      const room = await Room.start();
      const { id, writer, session } = await withWriter(room);
      session.socket?.terminate();
      await until(() => session.socket === null, 'the socket is gone');
      session.closed = null;
      room.agent.claims = claims;
      room.agent.list();
      await until(() => session.closed !== null, 'the liar is cut off');
      expect(session.closed).toMatchObject({ code: 4400 });
      expect(writer.closed).toBeNull();
      room.agent.claims = {};
      room.agent.list();
      await room.agent.attached(id);
      room.agent.write(id, 'still here');
      await writer.shows('still here');
    },
  );

  it('that says it lost output ends a session that has to be recorded', async () => {
    const room = await Room.start({ rules: { record: 'required' } });
    const { id, writer, session } = await withWriter(room);
    session.socket?.terminate();
    await until(() => session.socket === null, 'the socket is gone');
    room.agent.claims = { kept_from: 1_000, produced: 1_000 };
    room.agent.list();
    await writer.ended();
    expect(writer.exit).toMatchObject({ reason: 'recording_failed' });
    expect(await room.get(id)).toMatchObject({ status: 'closed', reason: 'recording_failed', recording: 'truncated' });
  });

  it('does not tell of ends that are the orchestrator’s to decide', async () => {
    const room = await Room.start();
    const { id, session } = await withWriter(room);
    room.agent.end(id, { code: 0, signal: null, reason: 'operator_removed' });
    await until(() => session.closed !== null, 'it is cut off');
    expect(session.closed).toMatchObject({ code: 4400 });
    expect(await room.get(id)).toMatchObject({ status: 'active' });
    expect(room.typesOf()).toEqual(['terminal.opened']);
  });

  it('that asks for tickets again and again has few that are good', () => {
    const tickets = new Tickets({ clock: { monotonic: () => 0 }, randomBytes: (count) => Buffer.alloc(count, next++) });
    let next = 1;
    const grant = { for: 'agent', sessionId: 'a', nodeId: 'b' as NodeId } as const;
    const other = tickets.issue({ ...grant, sessionId: 'c' });
    const issued = Array.from({ length: 100 }, () => tickets.issue(grant));
    expect(issued.filter((ticket) => tickets.redeem(ticket).ok)).toEqual(issued.slice(-8));
    expect(tickets.redeem(other).ok).toBe(true);
  });
});

describe('a recording that was tampered with while the orchestrator was down', () => {
  it('is left alone, and ends a session that has to be recorded', async () => {
    const room = await Room.start({ rules: { record: 'required' } });
    const { id, session } = await withWriter(room);
    room.agent.write(id, 'before the restart');
    await until(() => session.forgotten > 0, 'it is recorded');
    const { transcript_path: path } = await room.get(id);
    await room.stop();
    const forged = `[0.1,"o","forged"]\n[0.2,"h",{"offset":24,"sha256":"${'0'.repeat(64)}"}]\n`;
    appendFileSync(join(room.directory, path), forged);
    await room.begin();
    await until(async () => (await room.get(id)).status !== 'active', 'it has ended');
    expect(await room.get(id)).toMatchObject({
      reason: 'recording_failed',
      recording: 'failed',
      transcript_sha256: null,
    });
  });
});

describe('an operator who was removed', () => {
  it('has no use of a socket that was open already but silent, of a ticket, or of a request on its way', async () => {
    const room = await Room.start();
    const { id } = await room.openShell('cols=80', 'admin');
    await room.agent.attached(id);
    const silent = await openedSocket(await ticketUrl(room, id));
    const closed = closeOf(silent);
    const ticket = await ticketUrl(room, id);
    await removeOperator(room);
    silent.send(jsonFrame('hello', { version: 1, resume: null }));
    expect(await closed).toBe(4403);
    await expect(FakeClient.open(ticket)).rejects.toThrow('refused with 401');
    // Whose session was looked at before it was revoked.
    const late = [
      room.call('POST', `/terminal/session/${id}/attach`, { mode: 'write', take: true }),
      room.call('POST', `/terminal/${room.node}`),
      room.call('POST', `/agents/${room.node}/exec`, { command: ['reboot'] }),
    ];
    for (const { status, json } of await Promise.all(late)) {
      expect({ status, code: json.code }).toEqual({ status: 401, code: 'unauthenticated' });
    }
    expect(room.agent.sessions.size).toBe(1);
    expect((await room.get(id)).viewers).toEqual([]);
  });

  it('while waiting for an agent that is away is cut off at once', async () => {
    const room = await Room.start();
    const { id } = await room.openShell('cols=80', 'admin');
    await room.agent.attached(id);
    room.agent.receive = () => undefined;
    await room.stop();
    await room.begin();
    const waiting = await FakeClient.open(await ticketUrl(room, id));
    await removeOperator(room);
    expect(await waiting.ended()).toMatchObject({ code: 4403 });
    expect(waiting.notes).toEqual([]);
  });

  it('while a terminal is being opened has none, and the store knows of none', async () => {
    const room = await Room.start();
    room.agent.answers = false;
    const asked = room.call('POST', `/terminal/${room.node}`);
    await until(() => room.agent.messages.length > 0, 'the agent is asked');
    await removeOperator(room);
    const [message] = room.agent.messages;
    if (message?.type !== 'terminal_open') throw new Error('it was asked for something else');
    room.agent.send({
      type: 'terminal_answer',
      session_id: message.session_id,
      user: 'root',
      shell: '/bin/sh',
      error: null,
    });
    expect(await asked).toMatchObject({ status: 401 });
    expect((await room.call('GET', '/terminal', undefined, 'admin')).json).toEqual([]);
    expect(room.agent.messages.at(-1)).toMatchObject({ type: 'terminal_close' });
    expect(await room.told('terminal.refused')).toMatchObject({ actor: { name: 'operator' } });
    expect(room.typesOf()).toEqual(['terminal.refused']);
  });
});

describe('a client', () => {
  it('that asks without end is heard now and then', async () => {
    const room = await Room.start();
    const { id, writer } = await withWriter(room);
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    await viewer.welcomed();
    for (let count = 0; count < 2_000; count += 1) viewer.say({ kind: 'ask_pen' });
    room.agent.write(id, 'the end');
    await viewer.shows('the end');
    await writer.shows('the end');
    const asked = writer.notes.filter(({ kind }) => kind === 'pen_wanted').length;
    expect(asked).toBeGreaterThan(0);
    expect(asked).toBeLessThan(500);
  });
});
