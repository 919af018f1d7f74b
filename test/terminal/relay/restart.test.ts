/** Sockets, agents and orchestrators that go away cost a session nothing while they come back in time. */
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { inputFrame, signalFrame } from '../../../src/terminal/frames.js';
import { FakeClient, Room } from '../../support/relay.js';
import { until } from '../../support/until.js';

describe('a restart of the orchestrator', () => {
  it('costs no byte, neither of the output nor of the input, and the screen is the same', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell();
    const writer = await FakeClient.open(url);
    const { secret } = await writer.welcomed();
    const session = await room.agent.attached(id);
    writer.socket.send(inputFrame(0, Buffer.from('make\r')));
    await until(() => session.input.length === 5, 'the input came');
    const flood = Buffer.from(Array.from({ length: 60_000 }, (_, at) => `line ${at}\r\n`).join(''));
    room.agent.write(id, flood);
    await until(() => writer.received > 200_000, 'the output is under way');
    await room.stop();
    expect(await writer.ended()).toMatchObject({ code: 1001 });
    await until(() => session.closed !== null, 'the agent lost its socket');
    expect(session.closed?.code).toBe(1001);
    room.agent.write(id, 'said in between');
    await room.begin();
    expect(await room.get(id)).toMatchObject({ status: 'active', recording: 'on' });
    const back = room.attach(id, { mode: 'read' }, { resume: { secret, received: writer.received } });
    const client = await back;
    expect(client.welcome).toBeUndefined();
    room.agent.list();
    await client.shows('said in between');
    expect(await client.welcomed()).toMatchObject({ mode: 'write', taken: 5, secret });
    expect(Buffer.concat([writer.output, client.output]).equals(session.output)).toBe(true);
    client.socket.send(inputFrame(5, Buffer.from('exit\r')));
    await until(() => session.input.toString() === 'make\rexit\r', 'the input goes on');
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    await until(() => viewer.pictures.length === 1, 'the picture came');
    expect(viewer.pictures[0]?.bytes.toString()).toContain('line 59999');
    room.agent.end(id);
    await client.ended();
    expect(client.exit).toMatchObject({ code: 0, final_offset: session.output.length });
    const { text } = await room.call('GET', `/terminal/session/${id}/transcript`);
    expect(text).toContain('relay restarted');
    const recorded = text
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => JSON.parse(line));
    const shown = recorded.filter(([, code]) => code === 'o').map(([, , data]) => data);
    expect(shown.join('')).toBe(session.output.toString());
  });

  it('costs no byte of a command whose recording keeps only sizes and hashes', async () => {
    const room = await Room.start();
    const { id, url } = await room.exec({ command: ['cat'] });
    const first = await FakeClient.open(url);
    const { secret } = await first.welcomed();
    await room.agent.attached(id);
    const output = randomBytes(3_000_000);
    room.agent.write(id, output.subarray(0, 2_000_000));
    await until(() => first.received > 100_000, 'the output is under way');
    // The recording goes on while the client reads nothing.
    first.socket.pause();
    await until(
      async () => (await room.call('GET', `/terminal/session/${id}/transcript`)).text.includes('"d"'),
      'a piece is recorded',
    );
    first.socket.terminate();
    await room.stop();
    room.agent.write(id, output.subarray(2_000_000));
    await room.begin();
    const client = await room.attach(id, { mode: 'write' }, { resume: { secret, received: first.received } });
    room.agent.list();
    await until(() => first.received + client.output.length >= output.length, 'all has come');
    expect(Buffer.concat([first.output, client.output]).equals(output)).toBe(true);
    room.agent.end(id);
    await client.ended();
    const { text } = await room.call('GET', `/terminal/session/${id}/transcript`);
    expect(text.length).toBeLessThan(200_000);
    const kept = text
      .trim()
      .split('\n')
      .slice(1)
      .map((line) => JSON.parse(line));
    const sizes = kept.filter(([, code]) => code === 'd').map(([, , { bytes }]) => bytes);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(output.length);
    expect(await room.get(id)).toMatchObject({ recording: 'complete' });
  });

  it('leaves a session without a client to the operator who opened it', async () => {
    const room = await Room.start();
    const { id } = await room.openShell();
    await room.agent.attached(id);
    await room.stop();
    await room.begin();
    room.agent.list();
    const client = await room.attach(id, { mode: 'write' });
    const { secret, mode } = await client.welcomed();
    expect(mode).toBe('write');
    await room.stop();
    await room.begin();
    room.agent.list();
    const back = await room.attach(id, { mode: 'write' }, { resume: { secret, received: 0 } });
    expect(await back.welcomed()).toMatchObject({ mode: 'write', secret });
  });

  it('lets viewers come back with their place in the output, and only to where they were', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell();
    const other = await room.openShell();
    const writer = await FakeClient.open(url);
    const session = await room.agent.attached(id);
    await room.agent.attached(other.id);
    room.agent.write(id, 'seen by both; ');
    await writer.shows('seen by both; ');
    const viewer = await room.attach(id, { mode: 'read' }, { as: 'admin' });
    const { secret } = await viewer.welcomed();
    room.agent.write(id, 'before the restart; ');
    await viewer.shows('before the restart; ');
    await until(() => session.forgotten === session.output.length, 'it is recorded');
    await room.stop();
    room.agent.write(id, 'meanwhile');
    await room.begin();
    room.agent.list();
    const resume = { secret, received: viewer.received };
    const back = await room.attach(id, { mode: 'read' }, { as: 'admin', resume });
    expect(await back.welcomed()).toMatchObject({ mode: 'read', secret });
    await back.shows('meanwhile');
    expect(back.output.toString()).toBe('meanwhile');
    expect(back.pictures).toEqual([]);
    expect(room.typesOf().filter((type) => type === 'terminal.attached')).toHaveLength(1);

    const thief = await room.attach(id, { mode: 'read' }, { as: 'operator', resume });
    expect(await thief.ended()).toMatchObject({ code: 4403 });
    const elsewhere = await room.attach(other.id, { mode: 'read' }, { as: 'admin', resume });
    expect((await elsewhere.welcomed()).secret).not.toBe(secret);
    const changed = `${secret[0] === 'A' ? 'B' : 'A'}${secret.slice(1)}`;
    const forged = await room.attach(id, { mode: 'read' }, { as: 'admin', resume: { ...resume, secret: changed } });
    expect((await forged.welcomed()).secret).not.toBe(changed);
  });

  it('ends sessions that its agent no longer knows, and those that only the agent knows', async () => {
    const room = await Room.start();
    const lost = await room.openShell();
    const kept = await room.openShell();
    await room.agent.attached(lost.id);
    await room.agent.attached(kept.id);
    await room.stop();
    room.agent.sessions.delete(lost.id);
    await room.begin();
    const stranger = { ...room.agent.get(kept.id), id: '01JZZZZZZZZZZZZZZZZZZZZZZZ', socket: null };
    room.agent.sessions.set(stranger.id, stranger);
    room.agent.list();
    await until(async () => (await room.get(lost.id)).status === 'interrupted', 'the lost one is interrupted');
    expect(await room.get(lost.id)).toMatchObject({ reason: 'agent_lost', exit_code: null });
    expect(stranger.isClosed).toBe(true);
    await room.agent.attached(kept.id);
    expect(await room.get(kept.id)).toMatchObject({ status: 'active' });
  });
});

describe("an agent's socket that is lost", () => {
  it('comes back without a byte lost or doubled, in either direction', async () => {
    const room = await Room.start({ rules: { record: 'off' } });
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    const session = await room.agent.attached(id);
    for (let round = 0; round < 5; round += 1) {
      room.agent.write(id, Buffer.alloc(300_000, `round ${round} `));
      session.socket?.terminate();
      expect(await client.noted('agent_link')).toBeDefined();
      client.socket.send(inputFrame(round, Buffer.from(String(round))));
      await until(() => session.socket === null, 'the socket is gone');
      room.agent.list();
      await until(() => client.received === session.output.length, 'all output came');
      await until(() => session.input.length === round + 1, 'all input came');
    }
    expect(client.output.equals(session.output)).toBe(true);
    expect(session.input.toString()).toBe('01234');
    expect(client.notes.filter(({ kind }) => kind === 'agent_link').at(-1)).toMatchObject({ connected: true });
  });

  it('keeps signals from it until it is back, each once', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    const session = await room.agent.attached(id);
    session.socket?.terminate();
    expect(await client.noted('agent_link')).toBeDefined();
    for (const name of ['INT', 'INT', 'TERM']) client.socket.send(signalFrame(name));
    client.socket.send(inputFrame(0, Buffer.from('x')));
    await until(() => session.socket === null, 'the socket is gone');
    room.agent.list();
    await until(() => session.input.length === 1, 'all input came');
    client.socket.send(signalFrame('KILL'));
    const signals = () => session.frames.flatMap((frame) => (frame.type === 'signal' ? [frame.signal] : []));
    await until(() => signals().includes('KILL'), 'the last one came');
    expect(signals()).toEqual(['INT', 'TERM', 'KILL']);
  });

  it('for too long ends the session, and its people are warned before', async () => {
    const room = await Room.start({ rules: { agentGrace: 120_000 } });
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    const session = await room.agent.attached(id);
    session.socket?.terminate();
    await until(() => client.notes.some((note) => note.kind === 'agent_link' && !note.connected), 'it is reported');
    room.clock.advance(70_000);
    expect((await client.noted('ending')).seconds).toBeLessThanOrEqual(50);
    room.clock.advance(60_000);
    await client.ended();
    expect(client.exit).toMatchObject({ reason: 'agent_lost' });
    expect(await room.get(id)).toMatchObject({ status: 'interrupted', reason: 'agent_lost' });
    await room.told('terminal.interrupted');
  });

  it('with a ticket that is not its own is turned away', async () => {
    const room = await Room.start();
    room.agent.dials = false;
    const { id } = await room.openShell();
    await room.agent.dial(id, 'a'.repeat(43));
    await until(() => room.agent.get(id).closed?.code === 4401, 'it is turned away');
    await room.told('terminal.refused');
    room.agent.list();
    await room.agent.attached(id);
  });
});

describe('the clocks of a session', () => {
  it('end it without a client, without input, and when it is too old', async () => {
    const room = await Room.start({ rules: { detached: 60_000, idle: 600_000, max: 0 } });
    const alone = await room.openShell();
    await room.agent.attached(alone.id);
    room.clock.advance(61_000);
    await until(async () => (await room.get(alone.id)).reason === 'detached', 'it is closed');
    const idle = await room.openShell();
    const client = await FakeClient.open(idle.url);
    await client.welcomed();
    room.clock.advance(570_000);
    expect(await client.noted('ending')).toMatchObject({ text: 'nothing was typed for long' });
    const session = await room.agent.attached(idle.id);
    client.socket.send(inputFrame(0, Buffer.from('x')));
    await until(() => session.input.length === 1, 'the key came');
    room.clock.advance(570_000);
    await until(() => client.notes.filter(({ kind }) => kind === 'ending').length === 2, 'it is warned again');
    room.clock.advance(60_000);
    await client.ended();
    expect(client.exit).toMatchObject({ reason: 'idle' });
    room.rules = { ...room.rules, idle: 0, max: 100_000 };
    const old = await room.openShell();
    const last = await FakeClient.open(old.url);
    await last.welcomed();
    room.clock.advance(101_000);
    await last.ended();
    expect(last.exit).toMatchObject({ reason: 'expired' });
  });
});
