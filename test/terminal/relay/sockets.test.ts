/** Sockets that fall silent, say nothing, say too much or have no ticket: each costs itself alone. */

import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { TERMINAL_LIMITS, TERMINAL_SUBPROTOCOL } from '../../../src/terminal/limits.js';
import { FakeClient, Room, type RoomOptions } from '../../support/relay.js';
import { outputFrame } from '../../support/terminal-server.js';
import { until } from '../../support/until.js';

/** A room with a session that is written in, and another one that has nothing to do with it. */
async function twoSessions(options: RoomOptions = {}) {
  const room = await Room.start(options);
  const [mine, other] = [await room.openShell(), await room.openShell()];
  const writer = await FakeClient.open(mine.url);
  const { secret } = await writer.welcomed();
  const neighbour = await FakeClient.open(other.url);
  await neighbour.welcomed();
  const session = await room.agent.attached(mine.id);
  await room.agent.attached(other.id);
  let count = 0;
  const neighbourLives = async () => {
    count += 1;
    room.agent.write(other.id, `still here ${count};`);
    await neighbour.shows(`still here ${count};`);
    expect(neighbour.closed).toBeNull();
  };
  return { room, id: mine.id, writer, secret, session, neighbourLives };
}

/** A client's socket that is open and has said nothing. */
async function silentSocket(url: string): Promise<{ readonly socket: WebSocket; readonly closed: Promise<number> }> {
  const socket = new WebSocket(url, TERMINAL_SUBPROTOCOL, { perMessageDeflate: false });
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  socket.on('error', () => undefined);
  await once(socket, 'open');
  return { socket, closed };
}

const sockets = (): number => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;

describe('a socket that no longer answers', () => {
  const times = { ping: 200, dead: 2_000 };

  it('of an operator is cut, and its pen is free', async () => {
    const { room, id, writer, secret, neighbourLives } = await twoSessions({ times });
    writer.socket.pause();
    await until(async () => (await room.get(id)).writer === null, 'it is taken for dead');
    await neighbourLives();
    const back = await room.attach(id, { mode: 'read' }, { resume: { secret, received: 0 } });
    expect(await back.welcomed()).toMatchObject({ mode: 'write' });
    writer.socket.terminate();
  });

  it('of an agent is noticed long before the next ping by a viewer who types nothing', async () => {
    const { room, id, session, writer } = await twoSessions({ times: { ping: 600_000, dead: 6_000_000 } });
    const viewer = await room.attach(id, { mode: 'read' });
    await viewer.welcomed();
    session.socket?.pause();
    // A third of the interval of pings.
    room.clock.advance(200_000);
    await until(() => viewer.notes.some((note) => note.kind === 'agent_link' && !note.connected), 'the viewer knows');
    session.socket?.resume();
    await until(() => viewer.notes.some((note) => note.kind === 'agent_link' && note.connected), 'it is back');
    writer.socket.terminate();
  });

  it('of an agent is cut, clients are notified, and it comes back', async () => {
    const { room, id, writer, session, neighbourLives } = await twoSessions({ times });
    const dead = session.socket;
    dead?.pause();
    await until(
      () => writer.notes.some((note) => note.kind === 'agent_link' && !note.connected),
      'clients are notified',
    );
    await neighbourLives();
    expect(await room.get(id)).toMatchObject({ status: 'active' });
    session.socket = null;
    session.limit = 0;
    room.agent.list();
    await room.agent.attached(id);
    room.agent.write(id, 'back again');
    await writer.shows('back again');
    dead?.terminate();
  });
});

describe('a socket that says nothing', () => {
  it('is closed when its hello does not come', async () => {
    const { room, id, neighbourLives } = await twoSessions({ times: { hello: 300 } });
    const { json } = await room.call('POST', `/terminal/session/${id}/attach`, { mode: 'read' });
    const { closed } = await silentSocket(json.ws_url);
    expect(await closed).toBe(4400);
    expect(await room.get(id)).toMatchObject({ viewers: [] });
    await neighbourLives();
  });
});

describe('a frame that is too large', () => {
  it('costs the operator the socket, and no one else', async () => {
    const { room, id, writer, neighbourLives } = await twoSessions();
    writer.socket.send(Buffer.alloc(TERMINAL_LIMITS.frame + 1, 2));
    expect((await writer.ended()).code).toBe(1009);
    await until(async () => (await room.get(id)).writer === null, 'it is gone');
    expect(await room.get(id)).toMatchObject({ status: 'active' });
    await neighbourLives();
  });

  it.each([
    ['the socket takes', TERMINAL_LIMITS.frame + 1, 1009],
    ['output may have', TERMINAL_LIMITS.output + 1, 4400],
  ])('of more than %s costs the agent the socket, and no one else', async (_, bytes, code) => {
    const { room, id, writer, session, neighbourLives } = await twoSessions();
    session.socket?.send(outputFrame('out', 0, Buffer.alloc(bytes, 'x')));
    await until(() => session.closed !== null, 'it is cut off');
    expect(session.closed?.code).toBe(code);
    await neighbourLives();
    room.agent.list();
    await room.agent.attached(id);
    room.agent.write(id, 'in frames of the right size');
    await writer.shows('in frames of the right size');
    expect(writer.output.toString()).toBe('in frames of the right size');
  });
});

describe('many tickets that are not good', () => {
  it('open nothing, leave nothing, and disturb no session', async () => {
    const { room, id, neighbourLives } = await twoSessions();
    const { json } = await room.call('POST', `/terminal/session/${id}/attach`, { mode: 'read' });
    const before = sockets();
    const told = room.typesOf().length;
    for (let round = 0; round < 20; round += 1) {
      const tries = Array.from({ length: 25 }, (_, at) =>
        FakeClient.open(json.ws_url.replace(/ticket=.*/, `ticket=${'guess'.repeat(8)}${round}-${at}`)).then(
          () => 'opened',
          ({ message }: Error) => message,
        ),
      );
      expect(new Set(await Promise.all(tries))).toEqual(new Set(['refused with 401']));
      await neighbourLives();
    }
    await until(() => sockets() <= before, 'no socket is left');
    // One for the address, however many there were.
    await room.told('terminal.refused');
    expect(room.typesOf().slice(told)).toEqual(['terminal.refused']);
    const good = await FakeClient.open(json.ws_url);
    await good.welcomed();
  });
});

describe('the most terminals of an operator', () => {
  it('are counted with those that are being opened, and are free again when closed', async () => {
    const room = await Room.start({ rules: { perOperator: 2 } });
    const open = () => room.call('POST', `/terminal/${room.node}`);
    const asked = await Promise.all([open(), open(), open(), open(), open()]);
    const refused = asked.filter(({ status }) => status !== 200);
    expect(refused.map(({ status, json }) => [status, json.code])).toEqual(
      Array.from({ length: 3 }, () => [409, 'terminal_limit']),
    );
    const first = asked.find(({ status }) => status === 200)?.json.session_id;
    expect((await room.call('DELETE', `/terminal/session/${first}`)).status).toBe(204);
    expect((await open()).status).toBe(200);
    expect((await open()).json).toMatchObject({ code: 'terminal_limit' });
  });
});

describe('a huge and colourful screen', () => {
  it('is sent in a picture that clients take', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell('cols=1000&rows=500&term=xterm');
    const writer = await FakeClient.open(url);
    await writer.welcomed();
    await room.agent.attached(id);
    let screen = '';
    for (let cell = 0; cell < 1000 * 500; cell += 1) {
      screen += `\x1b[38;2;${cell % 251};${(cell * 7) % 253};${(cell * 31) % 255}m${String.fromCharCode(97 + (cell % 26))}`;
    }
    expect(screen.length).toBeGreaterThan(TERMINAL_LIMITS.pictureFrame);
    room.agent.write(id, screen);
    await until(() => writer.received === screen.length, 'all of it came');
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    await until(() => viewer.pictures.length === 1, 'the picture came');
    const { bytes, head } = viewer.pictures[0] ?? { bytes: Buffer.alloc(0), head: {} };
    expect(head).toMatchObject({ cols: 1000, rows: 500, offset: screen.length });
    expect(bytes.length).toBeLessThan(TERMINAL_LIMITS.pictureFrame);
    // The characters, as their colours do not fit.
    expect(bytes.toString()).toContain('abcdefghijklmnopqrstuvwxyz');
    room.agent.write(id, 'and on');
    await viewer.shows('and on');
  });
});
