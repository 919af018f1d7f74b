/** A session from its opening to its end, over real sockets. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { findTerminal, insertTerminal, type TerminalRow } from '../../../daemon/terminal/session-store.js';
import { Fault } from '../../../src/kernel/fault.js';
import { inputFrame, resizeFrame, signalFrame } from '../../../src/terminal/frames.js';
import { FakeClient, Room } from '../../support/relay.js';
import { until } from '../../support/until.js';

describe('a shell', () => {
  it('is opened, typed in, resized and ends with the status of its program', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    expect(await client.welcomed()).toMatchObject({
      session_id: id,
      node_name: 'web-1',
      mode: 'write',
      taken: 0,
      recorded: true,
      writer: 'operator',
      viewers: [],
    });
    const session = await room.agent.attached(id);
    room.agent.write(id, 'prompt$ ');
    await client.shows('prompt$ ');
    client.socket.send(inputFrame(0, Buffer.from('ls\r')));
    await until(() => session.input.toString() === 'ls\r', 'the agent has the input');
    await until(() => client.frames.some((frame) => frame.type === 'ack' && frame.consumed === 3), 'the ack came');
    client.socket.send(resizeFrame(100, 30, 1));
    for (const generation of [2, 3, 4]) client.socket.send(resizeFrame(100, 30, generation));
    client.socket.send(signalFrame('INT'));
    client.socket.send(signalFrame('USR1'));
    await until(() => session.frames.some(({ type }) => type === 'signal'), 'the signal came');
    expect(session.frames.find(({ type }) => type === 'resize')).toMatchObject({ cols: 100, rows: 30 });
    expect(await room.get(id)).toMatchObject({
      status: 'active',
      writer: 'operator',
      cols: 100,
      rows: 30,
      user: 'root',
    });
    room.agent.write(id, 'last words');
    room.agent.end(id, { code: 3, signal: null, reason: 'exited' });
    expect(await client.ended()).toMatchObject({ code: 1000 });
    expect(client.output.toString()).toBe('prompt$ last words');
    expect(client.exit).toEqual({ code: 3, signal: null, reason: 'exited', final_offset: 18 });
    await until(() => session.closed !== null, "the agent's socket was closed");
    expect(session.closed?.code).toBe(1000);
    const ended = await room.get(id);
    expect(ended).toMatchObject({
      status: 'closed',
      reason: 'exited',
      exit_code: 3,
      output_bytes: 18,
      recording: 'complete',
    });
    expect(ended.transcript_sha256).toMatch(/^[0-9a-f]{64}$/);
    await room.told('terminal.closed');
    expect(room.typesOf()).toEqual(['terminal.opened', 'terminal.closed']);
    const transcript = await room.call('GET', `/terminal/session/${id}/transcript`);
    expect(transcript.text).toContain('last words');
    expect(transcript.text.match(/"r"/g)).toHaveLength(1);
    expect(transcript.text).toMatch(/,"x","3"\]\n[^\n]+,"h",/);
    expect(room.terminals.active).toBe(0);
    await until(() => !room.terminals.isActive(id), 'nothing is left of it');
  });

  it('tells each way in which a program can end', async () => {
    const room = await Room.start();
    for (const exit of [
      { code: 0, signal: null, reason: 'exited' },
      { code: 255, signal: null, reason: 'exited' },
      { code: null, signal: 'KILL', reason: 'exited' },
      { code: null, signal: null, reason: 'failed' },
      { code: null, signal: null, reason: 'disabled' },
      { code: null, signal: null, reason: 'agent_stopped' },
    ]) {
      const { id, url } = await room.openShell();
      const client = await FakeClient.open(url);
      await room.agent.attached(id);
      room.agent.end(id, exit);
      await client.ended();
      expect(client.exit).toEqual({ ...exit, final_offset: 0 });
      const status = exit.reason === 'agent_stopped' ? 'interrupted' : 'closed';
      expect(await room.get(id)).toMatchObject({ status, exit_code: exit.code, exit_signal: exit.signal });
    }
  });

  it('is closed over the API, and its agent is notified', async () => {
    const room = await Room.start();
    const { id, url } = await room.openShell();
    const client = await FakeClient.open(url);
    const session = await room.agent.attached(id);
    room.agent.write(id, 'shown');
    await client.shows('shown');
    expect((await room.call('DELETE', `/terminal/session/${id}`)).status).toBe(204);
    expect(session.isClosed).toBe(true);
    await client.ended();
    // Nothing is missing of what the session was until then.
    expect(client.exit).toMatchObject({ code: null, reason: 'closed', final_offset: 5 });
    expect(await room.call('DELETE', `/terminal/session/${id}`)).toMatchObject({
      status: 404,
      json: { code: 'terminal_over' },
    });
    expect((await room.call('POST', `/terminal/session/${id}/attach`, { mode: 'read' })).json.code).toBe(
      'terminal_over',
    );
  });

  it('is refused with what the agent says', async () => {
    const room = await Room.start();
    for (const code of ['terminal_disabled', 'shell_not_allowed', 'terminal_limit', 'terminal_unsupported']) {
      room.agent.refusal = { code, message: 'not here' };
      expect((await room.call('POST', `/terminal/${room.node}`)).json).toMatchObject({ code, status: 409 });
    }
    room.agent.refusal = { code: 'something_new', message: 'who knows' };
    expect((await room.call('POST', `/terminal/${room.node}`)).json.code).toBe('terminal_unsupported');
    expect(room.typesOf()).toEqual(Array.from({ length: 5 }, () => 'terminal.refused'));
    expect((await room.call('GET', '/terminal')).json).toEqual([]);
  });

  it('is audited with its command when it is refused, by the agent or before it is asked', async () => {
    const room = await Room.start();
    const exec = () => room.call('POST', `/agents/${room.node}/exec`, { command: ['reboot', '-f'] });
    room.agent.refusal = { code: 'terminal_disabled', message: 'not here' };
    await exec();
    await room.running.db.updateTable('agents').set({ status: 'rejected' }).execute();
    expect((await exec()).json.code).toBe('agent_not_approved');
    const refusals = room.events.filter(({ type }) => type === 'terminal.refused');
    expect(refusals.map(({ metadata: { command, reason } }) => [command, reason])).toEqual([
      [['reboot', '-f'], 'terminal_disabled'],
      [['reboot', '-f'], 'agent_not_approved'],
    ]);
    for (const { summary } of refusals) expect(summary).toContain(' was refused a command on ');
  });

  it('is refused when the agent loses it right after its answer', async () => {
    const room = await Room.start();
    const { send } = room.agent;
    room.agent.send = (message) => {
      send(message);
      if (message.type !== 'terminal_answer') return;
      room.agent.sessions.clear();
      room.agent.list();
    };
    const { json } = await room.call('POST', `/terminal/${room.node}`);
    expect(json).toMatchObject({ code: 'terminal_unsupported', status: 409 });
    expect(json.detail).toContain('ended before it began');
    expect(room.typesOf()).toEqual(['terminal.refused']);
    expect((await room.call('GET', '/terminal')).json).toEqual([]);
  });

  it('leaves no recording behind when it does not come to be', async () => {
    let afterCreation = async (): Promise<unknown> => undefined;
    const room = await Room.start({
      recordings: (real) => ({
        create: async (...given) => {
          const recorder = await real.create(...given);
          await afterCreation();
          return recorder;
        },
        recover: (...given) => real.recover(...given),
        locate: (path) => real.locate(path),
      }),
    });
    const files = () =>
      readdirSync(join(room.directory, 'transcripts'), { recursive: true }).filter((name) => name.includes('.cast'));
    const { id } = await room.openShell();
    expect(files()).toHaveLength(1);
    afterCreation = () => room.terminals.revoked(room.agent.nodeId);
    await expect(room.openShell()).rejects.toThrow('agent_not_approved');
    const { uow } = room.running;
    const write = uow.write.bind(uow);
    afterCreation = async () => {
      uow.write = async () => {
        uow.write = write;
        throw new Fault('store_unavailable', 'the store is busy');
      };
    };
    await expect(room.openShell()).rejects.toThrow('store_unavailable');
    await until(() => files().join().endsWith(`${id}.cast.gz`), 'only what belongs to a session is there');
  });

  it('is found by a beginning of its ID, however many came after it', async () => {
    const room = await Room.start();
    const { id } = await room.openShell();
    const row = (await findTerminal(room.running.db, id)) as TerminalRow;
    await room.running.uow.write(async (tx) => {
      for (let index = 0; index < 2_100; index += 1) {
        const session_id = `7ZZZZZZZZZZZZZZZZZZZZZ${String(index).padStart(4, '0')}`;
        await insertTerminal(tx, { ...row, session_id, status: 'closed' });
      }
    });
    const list = async (query: string): Promise<string[]> =>
      (await room.call('GET', `/terminal?${query}`)).json.map((one: { session_id: string }) => one.session_id);
    expect(await list(`prefix=${id.slice(0, 24)}`)).toEqual([id]);
    expect(await list(`prefix=${id}`)).toEqual([id]);
    expect(await list('prefix=7ZZ&limit=2')).toEqual(['7ZZZZZZZZZZZZZZZZZZZZZ2099', '7ZZZZZZZZZZZZZZZZZZZZZ2098']);
    expect(await list('prefix=7ZZZZZZZZZZZZZZZZZZZZZ000&status=closed')).toHaveLength(10);
    expect(await list('prefix=7ZZZZZZZZZZZZZZZZZZZZZ000&status=active')).toEqual([]);
    expect(await list('prefix=7Y')).toEqual([]);
    const first = await room.call('GET', '/terminal?status=closed&limit=0');
    expect(first.json).toHaveLength(200);
    expect((await room.call('GET', '/terminal?status=closed&limit=0&offset=0')).json).toEqual(first.json);
    expect(first.headers.link).toBe('</api/v1/terminal?status=closed&limit=200&offset=200>; rel="next"');
    const last = await room.call('GET', '/terminal?status=closed&limit=200&offset=2000');
    expect([last.json.length, last.headers.link]).toEqual([100, undefined]);
    expect((await room.call('GET', '/terminal?prefix=01_%25')).json).toMatchObject({
      status: 400,
      code: 'invalid_query',
    });
  });

  it('is refused without an agent, for strangers and viewers, and beyond the limit of an operator', async () => {
    const room = await Room.start({ rules: { perOperator: 1 }, timeoutMs: 200 });
    expect((await room.call('POST', `/terminal/${'0'.repeat(32)}`)).json).toMatchObject({
      status: 404,
      code: 'agent_not_found',
    });
    expect((await room.call('POST', `/terminal/${room.node}`, undefined, 'viewer')).json.code).toBe('role_forbidden');
    room.isLinked = false;
    const away = (await room.call('POST', `/terminal/${room.node}`)).json;
    expect(away).toMatchObject({ status: 404, code: 'agent_not_connected' });
    room.isLinked = true;
    room.agent.answers = false;
    expect((await room.call('POST', `/terminal/${room.node}`)).json).toMatchObject({
      status: 504,
      code: 'agent_timeout',
    });
    room.agent.answers = true;
    await room.openShell();
    expect((await room.call('POST', `/terminal/${room.node}`)).json.code).toBe('terminal_limit');
    await room.openShell('cols=80', 'admin');
    await room.exec();
  });
});

describe('a command', () => {
  it('is not started on pipes when a terminal was asked for and the agent has none for it', async () => {
    const room = await Room.start();
    const path = `/agents/${room.node}/exec`;
    const refused = (await room.call('POST', path, { command: ['make'], tty: {} })).json;
    expect(refused).toMatchObject({ code: 'terminal_unsupported' });
    expect(refused.detail).toMatch(/runs no commands on a terminal/);
    await until(() => [...room.agent.sessions.values()].every(({ isClosed }) => isClosed), 'the agent forgets it');
    const both = (await room.call('POST', path, { command: ['make'], tty: {}, timeout_secs: 5 })).json;
    expect(both).toMatchObject({ status: 400, code: 'invalid_body' });
  });

  it('gives all of its output in order although no client takes it at first', async () => {
    const room = await Room.start({ rules: { record: 'off' } });
    const { id, url } = await room.exec();
    const output = Buffer.alloc(3 * 1024 * 1024, 'command output, ');
    const session = await room.agent.attached(id);
    room.agent.write(id, output);
    room.agent.end(id, { code: 7, signal: null, reason: 'exited' });
    expect(session.sent).toBeLessThanOrEqual(256 * 1024);
    const client = await FakeClient.open(url);
    await client.ended();
    expect(client.output.equals(output)).toBe(true);
    expect(client.exit).toMatchObject({ code: 7, final_offset: output.length });
    expect(await room.get(id)).toMatchObject({ kind: 'exec', command: ['make'], recording: 'off', exit_code: 7 });
  });
});
