/** Several operators in one session: viewers, the pen, coming back, and who is kept out. */
import { describe, expect, it } from 'vitest';
import { setOperatorRights } from '../../../daemon/auth/operator-store.js';
import { askEchoFrame, echoFrame, inputFrame, pingFrame, resizeFrame } from '../../../src/terminal/frames.js';
import { operator } from '../../support/http.js';
import { FakeClient, Room } from '../../support/relay.js';
import { until } from '../../support/until.js';

async function withWriter(room: Room) {
  const { id, url } = await room.openShell();
  const writer = await FakeClient.open(url);
  const { secret } = await writer.welcomed();
  const session = await room.agent.attached(id);
  return { id, writer, secret: secret as string, session };
}

/** Holds the next change of the store up. `asked` resolves when there is one to hold. */
function holdUp({ running: { uow } }: Room): { readonly asked: Promise<void>; readonly release: () => void } {
  const write = uow.write.bind(uow);
  let [ask, release] = [() => {}, () => {}];
  const asked = new Promise<void>((resolve) => {
    ask = resolve;
  });
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  uow.write = async (work) => {
    uow.write = write;
    ask();
    await released;
    return write(work);
  };
  return { asked, release };
}

describe('questions about the echo', () => {
  it('go from the one who types to the agent, and the answers back to them alone', async () => {
    const room = await Room.start();
    const { id, writer, session } = await withWriter(room);
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    await viewer.welcomed();
    viewer.socket.send(askEchoFrame(1));
    writer.socket.send(askEchoFrame(2));
    const asked = () => session.frames.filter(({ type }) => type === 'askEcho');
    await until(() => asked().length > 0, 'the agent is asked');
    expect(asked()).toEqual([{ type: 'askEcho', offset: 2 }]);
    const ack = { given: 2, settled: 1, output: 3, reading: 'keys' } as const;
    session.socket?.send(echoFrame(ack));
    room.agent.write(id, 'behind it');
    await viewer.shows('behind it');
    await until(() => writer.frames.some(({ type }) => type === 'echo'), 'the answer is there');
    expect(writer.frames.filter(({ type }) => type === 'echo')).toEqual([{ type: 'echo', ...ack }]);
    expect(viewer.frames.some(({ type }) => type === 'echo')).toBe(false);
    await room.stop();
  });
});

describe('a viewer', () => {
  it('sees the screen as it is and what follows, and what it types goes nowhere', async () => {
    const room = await Room.start();
    const { id, writer, session } = await withWriter(room);
    room.agent.write(id, '\x1b[2J\x1b[Hhello from the screen');
    await writer.shows('screen');
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    expect(await viewer.welcomed()).toMatchObject({ mode: 'read', writer: 'operator', viewers: ['admin'] });
    expect(await writer.noted('people')).toMatchObject({
      mode: 'write',
      viewers: ['admin'],
      text: 'admin joined to watch',
    });
    await until(() => viewer.pictures.length > 0, 'the picture came');
    expect(viewer.pictures[0]?.bytes.toString()).toContain('hello from the screen');
    expect(viewer.pictures[0]?.head).toEqual({ cols: 80, rows: 24, offset: session.output.length });
    room.agent.write(id, ' and more');
    await viewer.shows(' and more');
    viewer.socket.send(inputFrame(0, Buffer.from('x')));
    viewer.socket.send(resizeFrame(10, 10, 1));
    viewer.say({ kind: 'close' });
    viewer.say({ kind: 'ask_latency' });
    expect((await viewer.noted('latency')).agent_ms).toBeGreaterThanOrEqual(0);
    writer.socket.send(inputFrame(0, Buffer.from('y')));
    await until(() => session.input.length > 0, 'the agent has input');
    expect(session.input.toString()).toBe('y');
    expect(session.frames.some(({ type }) => type === 'resize')).toBe(false);
    viewer.say({ kind: 'ask_pen' });
    expect(await writer.noted('pen_wanted')).toEqual({ kind: 'pen_wanted', by: 'admin' });
    expect((await room.told('terminal.attached')).summary).toMatch(/^admin attached to .* of operator on .* to watch$/);
    expect(room.typesOf()).toEqual(['terminal.opened', 'terminal.attached']);
  });

  it('that is slow is shown the screen instead of the output that it missed, and delays no other', async () => {
    const room = await Room.start();
    const { id, writer } = await withWriter(room);
    const viewer = await room.attach(id, { mode: 'read' }, { acks: false });
    await until(() => viewer.pictures.length > 0, 'the first picture came');
    const flood = Buffer.alloc(6 * 1024 * 1024, 'flood of output\r\n');
    room.agent.write(id, flood);
    await until(() => writer.received === flood.length, 'the writer has all of it');
    expect(viewer.output.length).toBeLessThanOrEqual(1024 * 1024);
    viewer.acks = true;
    viewer.ack();
    await until(() => viewer.pictures.length > 1 && viewer.received === flood.length, 'the viewer is there again');
    room.agent.write(id, 'the end');
    await viewer.shows('the end');
  });
});

describe('the pen', () => {
  it('is refused while another client writes, and taken when asked for', async () => {
    const room = await Room.start();
    const { id, writer, session } = await withWriter(room);
    writer.socket.send(inputFrame(0, Buffer.from('abc')));
    await until(() => session.input.length === 3, 'the input came');
    const refused = await room.call('POST', `/terminal/session/${id}/attach`, { mode: 'write' }, 'admin');
    expect(refused.json).toMatchObject({ status: 409, code: 'terminal_pen_taken' });
    const other = await room.attach(id, { mode: 'write', take: true }, { as: 'admin' });
    expect(await other.welcomed()).toMatchObject({ mode: 'write', taken: 3, writer: 'admin', viewers: ['operator'] });
    expect(await writer.noted('people')).toMatchObject({ mode: 'read', writer: 'admin', text: 'admin took the pen' });
    writer.socket.send(inputFrame(3, Buffer.from('NO')));
    other.socket.send(inputFrame(3, Buffer.from('def')));
    other.socket.send(resizeFrame(120, 40, 1));
    await until(() => session.input.length === 6, 'the input of the other came');
    expect(session.input.toString()).toBe('abcdef');
    await until(() => session.frames.some(({ type }) => type === 'resize'), 'its size came');
    expect(await room.told('terminal.taken_over')).toMatchObject({ metadata: { taken_from: 'operator' } });
    room.agent.end(id);
    await other.ended();
    await writer.ended();
    expect(writer.exit).toMatchObject({ code: 0 });
    expect((await room.call('GET', `/terminal/session/${id}/transcript`)).text).toContain('admin took the pen');
  });

  it('taken by two at the same moment goes from one to the other, and the log says so', async () => {
    const room = await Room.start();
    const { id, writer } = await withWriter(room);
    const held = holdUp(room);
    const take = { mode: 'write', take: true };
    const first = await room.attach(id, take, { as: 'admin' });
    await held.asked;
    const second = await room.attach(id, take, { as: 'operator' });
    second.socket.send(pingFrame(1));
    await until(() => second.frames.some(({ type }) => type === 'pong'), 'the second one is heard');
    // The store answers in order: what was asked of it for the second one is answered by then.
    await room.get(id);
    held.release();
    expect(await first.welcomed()).toMatchObject({ mode: 'write', writer: 'admin' });
    expect(await second.welcomed()).toMatchObject({ mode: 'write', writer: 'operator' });
    expect(await first.noted('people')).toMatchObject({ mode: 'read', text: 'operator took the pen' });
    const taken = room.events.filter(({ type }) => type === 'terminal.taken_over');
    expect(taken.map(({ actor, metadata }) => `${actor.name} from ${metadata.taken_from}`)).toEqual([
      'admin from operator',
      'operator from admin',
    ]);
    const told = writer.notes.filter(({ kind }) => kind === 'people').map(({ text }) => text);
    expect(told).toEqual(['admin took the pen', 'operator took the pen']);
  });

  it('taken by one who goes in the same moment is free then, as the log says', async () => {
    const room = await Room.start();
    const { id, writer, session } = await withWriter(room);
    const held = holdUp(room);
    const gone = await room.attach(id, { mode: 'write', take: true }, { as: 'admin' });
    await held.asked;
    gone.socket.terminate();
    await until(async () => room.running.room.clientEndpoint.size === 1, 'it is gone');
    held.release();
    expect(await writer.noted('people')).toMatchObject({ mode: 'read', writer: null, text: 'admin left' });
    expect(await room.told('terminal.taken_over')).toMatchObject({ metadata: { taken_from: 'operator' } });
    writer.socket.send(inputFrame(0, Buffer.from('NO')));
    const next = await room.attach(id, { mode: 'write' }, { as: 'admin' });
    expect(await next.welcomed()).toMatchObject({ mode: 'write', taken: 0 });
    next.socket.send(inputFrame(0, Buffer.from('yes')));
    await until(() => session.input.length === 3, 'the input of the next one came');
    expect(session.input.toString()).toBe('yes');
  });

  it('does not come back with a client from whom it was taken', async () => {
    const room = await Room.start();
    const { id, writer, secret } = await withWriter(room);
    writer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the writer is gone');
    const other = await room.attach(id, { mode: 'write' }, { as: 'admin' });
    await other.welcomed();
    const back = await room.attach(id, { mode: 'read' }, { resume: { secret, received: 0 } });
    expect(await back.welcomed()).toMatchObject({ mode: 'read', writer: 'admin' });
  });
});

describe('a viewer that asks for the pen', () => {
  it('has it at once when the writer has left, as the log and the recording say, and keeps it over a cut', async () => {
    const room = await Room.start();
    const { id, writer, secret, session } = await withWriter(room);
    writer.socket.send(inputFrame(0, Buffer.from('abc')));
    await until(() => session.input.length === 3, 'the input of the writer came');
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    const mine = (await viewer.welcomed()).secret;
    const other = await room.attach(id, { mode: 'read' });
    await other.welcomed();
    writer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the writer is gone');
    viewer.say({ kind: 'ask_pen' });
    await until(() => viewer.notes.at(-1)?.mode === 'write', 'the viewer has the pen');
    const here = { writer: 'admin', viewers: ['operator'] };
    const text = 'the pen was free, so you type now';
    expect(viewer.notes.at(-1)).toEqual({ kind: 'people', mode: 'write', taken: 3, ...here, text });
    await until(() => other.notes.at(-1)?.text === 'admin took the pen', 'the other viewer knows');
    expect(other.notes.at(-1)).toMatchObject({ mode: 'read', ...here });
    viewer.socket.send(resizeFrame(100, 30, 1));
    viewer.socket.send(inputFrame(3, Buffer.from('def')));
    await until(() => session.input.length === 6, 'the input of the viewer came');
    expect(session.input.toString()).toBe('abcdef');
    await until(() => session.frames.some(({ type }) => type === 'resize'), 'its size came');
    expect(room.events.at(-1)).toMatchObject({
      type: 'terminal.attached',
      actor: { name: 'admin' },
      summary: expect.stringMatching(/^admin took the free pen of a terminal of operator on /),
      metadata: { session_id: id, mode: 'write' },
    });
    const late = await room.attach(id, { mode: 'read' }, { resume: { secret, received: 0 } });
    expect(await late.welcomed()).toMatchObject({ mode: 'read', writer: 'admin' });
    viewer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the viewer is cut off');
    const back = await room.attach(id, { mode: 'read' }, { as: 'admin', resume: { secret: mine, received: 0 } });
    expect(await back.welcomed()).toMatchObject({ mode: 'write', taken: 6 });
    room.agent.end(id);
    await back.ended();
    expect((await room.call('GET', `/terminal/session/${id}/transcript`)).text).toContain('admin took the pen');
  });

  it('at the same moment as another has it alone, and the other one asks it', async () => {
    const room = await Room.start();
    const { id, writer } = await withWriter(room);
    const first = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    await first.welcomed();
    const second = await room.attach(id, { mode: 'read' });
    await second.welcomed();
    writer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the writer is gone');
    const held = holdUp(room);
    first.say({ kind: 'ask_pen' });
    await held.asked;
    second.say({ kind: 'ask_pen' });
    second.socket.send(pingFrame(1));
    await until(() => second.frames.some(({ type }) => type === 'pong'), 'the second one is heard');
    held.release();
    expect(await first.noted('pen_wanted')).toEqual({ kind: 'pen_wanted', by: 'operator' });
    expect(await room.get(id)).toMatchObject({ writer: 'admin', viewers: ['operator'] });
    expect(second.notes.filter(({ mode }) => mode === 'write')).toEqual([]);
  });

  it('and loses its rights in that moment does not get it', async () => {
    const room = await Room.start();
    const { id, writer, session } = await withWriter(room);
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    await viewer.welcomed();
    writer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the writer is gone');
    const held = holdUp(room);
    viewer.say({ kind: 'ask_pen' });
    await held.asked;
    const removed = room.terminals.operatorRemoved(operator('admin').operator_id);
    viewer.socket.send(inputFrame(0, Buffer.from('NO')));
    held.release();
    await removed;
    expect(await viewer.ended()).toMatchObject({ code: 4403 });
    expect((await room.get(id)).writer).toBe(null);
    const next = await room.attach(id, { mode: 'write' });
    await next.welcomed();
    next.socket.send(inputFrame(0, Buffer.from('yes')));
    await until(() => session.input.length === 3, 'the input of the next writer came');
    expect(session.input.toString()).toBe('yes');
  });
});

describe('a client that comes back', () => {
  it('gets exactly what it missed, at whatever offset it was cut off, and its pen', async () => {
    const room = await Room.start();
    const { id, writer, secret, session } = await withWriter(room);
    const text = 'The quick brown fox jumps over the lazy dog';
    for (const word of text.split(/(?<= )/)) room.agent.write(id, word);
    await writer.shows('dog');
    for (let received = 0; received <= text.length; received += 1) {
      const back = await room.attach(id, { mode: 'read' }, { resume: { secret, received } });
      expect(await back.welcomed()).toMatchObject({ mode: 'write', secret });
      if (received < text.length) await until(() => back.received === text.length, 'it has the rest');
      expect(back.pictures).toEqual([]);
      expect(back.output.toString()).toBe(text.slice(received));
    }
    expect(await writer.ended()).toMatchObject({ code: 4409 });
    const last = await room.attach(id, { mode: 'read' }, { resume: { secret, received: text.length } });
    await last.welcomed();
    last.socket.send(inputFrame(0, Buffer.from('a')));
    await until(() => session.input.length === 1, 'its input is taken');
    expect(room.typesOf()).toEqual(['terminal.opened']);
  });

  it('after too much output gets the screen', async () => {
    const room = await Room.start();
    const { id, writer, secret } = await withWriter(room);
    writer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the writer is gone');
    const flood = Buffer.alloc(8 * 1024 * 1024, 'line\r\n');
    room.agent.write(id, flood);
    await until(async () => (await room.get(id)).output_bytes === flood.length, 'the flood is over');
    const back = await room.attach(id, { mode: 'read' }, { resume: { secret, received: 10 } });
    await until(() => back.pictures.length === 1, 'the picture came');
    expect(back.pictures[0]?.head.offset).toBe(flood.length);
    expect((await back.welcomed()).mode).toBe('write');
  });

  it('that was cut off before the last byte still gets all of it, and how it ended', async () => {
    const room = await Room.start();
    const { id, writer, secret } = await withWriter(room);
    writer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the writer is gone');
    room.agent.write(id, 'goodbye');
    room.agent.end(id, { code: 9, signal: null, reason: 'exited' });
    await until(async () => (await room.get(id)).status === 'closed', 'it is over');
    const others = await room.call('POST', `/terminal/session/${id}/attach`, { mode: 'read' }, 'admin');
    expect(others.json.code).toBe('terminal_over');
    const back = await room.attach(id, { mode: 'read' }, { resume: { secret, received: 4 } });
    await back.ended();
    expect(back.output.toString()).toBe('bye');
    expect(back.exit).toMatchObject({ code: 9 });
    expect((await room.call('POST', `/terminal/session/${id}/attach`, { mode: 'read' })).json.code).toBe(
      'terminal_over',
    );
  });
});

describe('whoever may not', () => {
  it('use a ticket twice, late, or for another session is refused and reported', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell();
    const other = await room.openShell();
    await expect(FakeClient.open(url.replace(id, other.id))).rejects.toThrow('refused with 401');
    await expect(FakeClient.open(url)).rejects.toThrow('refused with 401');
    await expect(FakeClient.open(url.replace(/ticket=.*/, 'ticket=nothing'))).rejects.toThrow('refused with 401');
    await expect(FakeClient.open(url.replace('/stream', '/other'))).rejects.toThrow('refused with 404');
    await expect(FakeClient.open(other.url, { headers: { origin: 'https://evil.example' } })).rejects.toThrow('403');
    await expect(FakeClient.open(other.url, { protocol: 'orch-term.v0' })).rejects.toThrow('refused with 400');
    room.clock.advance(31_000);
    await expect(FakeClient.open(other.url)).rejects.toThrow('refused with 401');
    const reasons = () =>
      room.events.filter(({ type }) => type === 'terminal.refused').map(({ metadata }) => metadata.reason);
    for (const reason of ['a ticket for something else', 'a ticket that is expired']) {
      await until(() => reasons().includes(reason), `it is in the log: ${reason}`);
    }
  });

  it('resume with the secret of another operator is cut off, with an audit event', async () => {
    const room = await Room.start();
    const { id, secret } = await withWriter(room);
    const thief = await room.attach(id, { mode: 'read' }, { as: 'admin', resume: { secret, received: 0 } });
    expect(await thief.ended()).toMatchObject({ code: 4403 });
    expect(await room.told('terminal.refused')).toMatchObject({ actor: { name: 'admin' } });
  });

  it('be here any more is cut off, and what they had opened ends', async () => {
    const room = await Room.start();
    const { id, writer } = await withWriter(room);
    const theirs = await room.openShell('cols=80', 'admin');
    const guest = await room.attach(theirs.id, { mode: 'read' });
    await guest.welcomed();
    await room.agent.attached(theirs.id);
    await room.terminals.operatorRemoved('0'.repeat(32));
    expect(await writer.ended()).toMatchObject({ code: 4403 });
    expect(await guest.ended()).toMatchObject({ code: 4403 });
    expect(await room.get(id)).toMatchObject({ status: 'closed', reason: 'operator_removed' });
    expect(await room.get(theirs.id)).toMatchObject({ status: 'active' });
  });

  it('be an agent any more loses its terminals', async () => {
    const room = await Room.start();
    const { id, writer } = await withWriter(room);
    await room.terminals.revoked(room.agent.nodeId);
    await writer.ended();
    expect(writer.exit).toMatchObject({ reason: 'agent_rejected' });
    expect(await room.get(id)).toMatchObject({ status: 'interrupted', reason: 'agent_rejected' });
  });
});

describe('an operator with grants', () => {
  const { operator_id } = operator('admin');
  const may = (room: Room, ...rights: readonly string[]) =>
    setOperatorRights(room.running.db, operator_id, {
      role: 'operator',
      grants: [{ rights: [...rights], selector: `node_id=${room.agent.nodeId}` }],
    });

  it('who may only watch does not get a free pen', async () => {
    const room = await Room.start();
    const { id, writer } = await withWriter(room);
    await may(room, 'watch');
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    await viewer.welcomed();
    writer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the writer is gone');
    viewer.say({ kind: 'ask_pen' });
    const text = 'the pen is free, but you may only watch this session';
    await until(() => viewer.notes.at(-1)?.text === text, 'the viewer is refused');
    expect((await room.get(id)).writer).toBe(null);
    await may(room, 'watch', 'take-pen');
    viewer.say({ kind: 'ask_pen' });
    await until(() => viewer.notes.at(-1)?.mode === 'write', 'the viewer has the pen');
  });

  it('loses the pen with the right to it, and does not come back with it', async () => {
    const room = await Room.start();
    const { id, writer } = await withWriter(room);
    await may(room, 'watch', 'take-pen');
    writer.socket.terminate();
    await until(async () => (await room.get(id)).writer === null, 'the writer is gone');
    const typist = await room.attach(id, { mode: 'write' }, { as: 'admin' });
    await typist.welcomed();
    await until(async () => (await room.get(id)).writer === 'admin', 'the other types');
    await may(room, 'watch');
    await room.terminals.rightsChanged(null);
    expect(await typist.ended()).toMatchObject({ code: 4403 });
    expect((await room.get(id)).writer).toBe(null);
    await may(room);
    await room.terminals.rightsChanged(null);
    expect(await room.get(id)).toMatchObject({ status: 'active', viewers: [] });
  });

  it('loses a session of their own with the right to it', async () => {
    const room = await Room.start();
    const { id } = await withWriter(room);
    const own = operator('operator').operator_id;
    const grants = [{ rights: ['exec'], selector: '*' }];
    await setOperatorRights(room.running.db, own, { role: 'operator', grants });
    await room.terminals.rightsChanged(room.agent.nodeId);
    await until(async () => (await room.get(id)).status === 'closed', 'the session is over');
    expect(await room.get(id)).toMatchObject({ reason: 'operator_removed' });
  });

  it('loses a session of their own when their time is over', async () => {
    const room = await Room.start();
    const { id } = await withWriter(room);
    const own = operator('operator').operator_id;
    await setOperatorRights(room.running.db, own, { role: 'operator', grants: null, expires_at: 1 });
    await room.terminals.rightsChanged(null);
    await until(async () => (await room.get(id)).status === 'closed', 'the session is over');
  });
});
