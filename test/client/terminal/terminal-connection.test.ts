import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import { drawn } from '../../support/exhaustive.js';
import { until } from '../../support/orch.js';
import {
  outputFrame,
  type ScriptedSession,
  startTerminalServer,
  type TerminalServer,
} from '../../support/terminal-server.js';
import { attach, type Told } from './terminal-client.js';

let server: TerminalServer;
let remote: ScriptedSession;

beforeEach(async () => {
  server = await startTerminalServer();
  remote = server.session;
  onTestFinished(() => server.stop());
});

const connected = (told: Told) => until(() => told.states.some(({ kind }) => kind === 'connected'), 'it is connected');
const ended = (told: Told) => until(() => told.end !== null, 'it is over');

describe('a terminal at the operator', () => {
  it('shows output in order and leaves after its last byte', async () => {
    remote.print('before ');
    const told = await attach(server);
    await connected(told);
    remote.print('after');
    remote.print('oops', 'err');
    remote.end({ code: 7 });
    await ended(told);
    expect(told.shown.toString()).toBe('before after');
    expect(told.errors.toString()).toBe('oops');
    expect(told.end).toEqual({
      kind: 'exit',
      exit: { code: 7, signal: null, reason: 'exited', final_offset: 16 },
      complete: true,
    });
  });

  it('does not leave before what it was given has reached its destination', async () => {
    const told = await attach(server);
    await connected(told);
    told.isStalled = true;
    remote.print('slow terminal');
    remote.end();
    await until(() => told.stalled.length > 0, 'output has come');
    // Nothing tells that it does not leave.
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(told.end).toBeNull();
    for (const done of told.stalled) done();
    await ended(told);
    expect(told.end).toMatchObject({ kind: 'exit', complete: true });
  });

  it('grants a window only for what has reached its destination', async () => {
    const told = await attach(server);
    await connected(told);
    told.isStalled = true;
    const bytes = randomBytes(2_000_000);
    remote.print(bytes);
    await until(() => told.shown.length >= 128 * 1024 - 4_096, 'the window is full');
    // Nothing tells that no more is granted.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(told.shown.length).toBeLessThanOrEqual(128 * 1024);
    told.isStalled = false;
    for (const done of told.stalled.splice(0)) done();
    await until(() => told.shown.length === bytes.length, 'all has come');
    expect(told.shown.equals(bytes)).toBe(true);
  });

  it('types, in frames of a size that the protocol allows and never beyond the limit', async () => {
    remote.inputLimit = 64 * 1024;
    const told = await attach(server);
    await connected(told);
    remote.acknowledgeInput();
    // The limit of an acknowledgement is never taken back; the first one is a megabyte.
    const paste = randomBytes(1_500_000);
    remote.inputLimit = 1024 * 1024;
    expect(told.session.sendInput(paste)).toBe(false);
    const acknowledging = setInterval(() => remote.acknowledgeInput(), 5);
    onTestFinished(() => clearInterval(acknowledging));
    await until(() => remote.input.length === paste.length, 'all is taken');
    expect(remote.input.equals(paste)).toBe(true);
    await until(() => told.drains > 0, 'it was notified of room');
    told.session.sendEof();
    await until(() => remote.eof, 'the end of the input has come');
  });

  it('tells its size again after a reconnect, and every signal and wish once', async () => {
    const told = await attach(server);
    told.session.resize(100, 30);
    await connected(told);
    told.session.resize(5_000, 0);
    told.session.signal('INT');
    told.session.redraw();
    await until(() => remote.notes.length === 1, 'the note has come');
    remote.cut();
    await until(() => remote.sizes.length === 3, 'the size has come again');
    expect(remote.sizes).toEqual(['100x30', '1000x1', '1000x1']);
    expect(remote.signals).toEqual(['INT']);
    expect(remote.notes).toEqual([{ kind: 'redraw' }]);
  });

  it('goes on after a snapshot where that was made', async () => {
    remote.print('history');
    remote.snapshotFor = () => ({ cols: 80, rows: 24, bytes: Buffer.from('SCREEN') });
    const told = await attach(server);
    await connected(told);
    remote.print(' news');
    remote.end();
    await ended(told);
    expect(told.snapshots).toEqual(['SCREEN']);
    expect(told.shown.toString()).toBe(' news');
    expect(told.end).toMatchObject({ kind: 'exit', complete: true });
  });

  it('tells how much output a snapshot stood in for, and of none when it attaches anew', async () => {
    remote.print('0123456789');
    remote.snapshotFor = () => ({ cols: 80, rows: 24, bytes: Buffer.from('the screen') });
    const told = await attach(server);
    await until(() => told.snapshots.length === 1, 'the screen is drawn');
    expect(told.skipped).toBe(0);
    remote.print('seen');
    await until(() => told.shown.toString() === 'seen', 'output is shown');
    server.problems.push('shutting_down');
    remote.cut();
    await until(() => !remote.connected, 'the connection is gone');
    remote.print(Buffer.alloc(5_000, 'x'));
    remote.output.dropBefore(remote.output.end);
    await until(() => told.snapshots.length === 2, 'the screen is drawn again');
    expect(told.skipped).toBe(5_000);
  });

  it('shows every byte once and types every key once, wherever connections are cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ minLength: 1, maxLength: 60_000 }),
        fc.uint8Array({ minLength: 1, maxLength: 40_000 }),
        fc.array(fc.nat(20_000), { maxLength: 4 }),
        fc.nat(3_000),
        async (output, input, cuts, overlap) => {
          const one = await startTerminalServer();
          try {
            one.session.cuts = [...cuts];
            one.session.overlap = overlap;
            const told = await attach(one, { queueInput: true });
            await connected(told);
            const half = output.length >> 1;
            one.session.print(Buffer.from(output.subarray(0, half)));
            for (let at = 0; at < input.length; at += 7_000) told.session.sendInput(input.subarray(at, at + 7_000));
            one.session.print(Buffer.from(output.subarray(half)));
            const isDone = () => one.session.input.length === input.length && told.shown.length === output.length;
            await until(isDone, 'both streams are through');
            expect(told.shown.equals(output)).toBe(true);
            expect(one.session.input.equals(input)).toBe(true);
            one.session.end({ code: 3 });
            await ended(told);
            expect(told.end).toMatchObject({ kind: 'exit', exit: { code: 3 }, complete: true });
          } finally {
            await one.stop();
          }
        },
      ),
      { numRuns: drawn(15) },
    );
  });

  it('takes a gap for a fault of the connection, and comes back for what is missing', async () => {
    const told = await attach(server);
    await connected(told);
    remote.print('one ');
    await until(() => told.shown.length === 4, 'output has come');
    remote.frame(outputFrame('out', 100, Buffer.from('from nowhere')));
    await until(() => remote.connections === 2, 'it has come back');
    remote.print('two');
    await until(() => told.shown.toString() === 'one two', 'nothing is missing');
    expect(remote.hellos[1]).toMatchObject({ resume: { received: 4 } });
    expect(server.attaches[1]).toEqual({ mode: 'read' });
  });

  it('gives up on a server that never stops to break the protocol', async () => {
    const told = await attach(server);
    await connected(told);
    remote.print('x');
    const breaking = setInterval(() => remote.frame(Buffer.of(0x07, 1, 2)), 20);
    onTestFinished(() => clearInterval(breaking));
    await ended(told);
    expect(told.end).toMatchObject({ kind: 'failed', fault: { code: 'protocol_violation' } });
  });

  it('comes back through refusals that pass, and gives up at one that does not', async () => {
    const told = await attach(server);
    await connected(told);
    server.problems.push('shutting_down', 'store_unavailable', 'rate_limited');
    remote.cut();
    await until(() => told.states.length === 3, 'it has come back');
    server.problems.push('role_forbidden');
    remote.cut();
    await ended(told);
    expect(told.end).toMatchObject({ kind: 'failed', fault: { code: 'role_forbidden' } });
    expect(told.states.map(({ kind }) => kind)).toEqual(['connected', 'lost', 'connected', 'lost']);
  });

  it('gives up when its patience is over', async () => {
    const told = await attach(server, { reconnectMs: 300 });
    await connected(told);
    await server.stop();
    await ended(told);
    expect(told.end).toMatchObject({ kind: 'failed', fault: { code: 'unreachable' } });
  });

  it('does not fight for a session that another connection of it has taken, nor for one it may not have', async () => {
    const told = await attach(server);
    await connected(told);
    remote.close(TERMINAL_CLOSE.replaced);
    await ended(told);
    expect(told.end).toEqual({ kind: 'replaced' });
    const other = await attach(server);
    await connected(other);
    remote.close(TERMINAL_CLOSE.revoked);
    await ended(other);
    expect(other.end).toMatchObject({ kind: 'failed', fault: { code: 'role_forbidden' } });
  });

  it('tells how the session ended while it was away, and that output is missing', async () => {
    const told = await attach(server);
    await connected(told);
    remote.print('seen');
    await until(() => told.shown.length === 4, 'output has come');
    remote.cut();
    await until(() => !remote.connected, 'it is lost');
    remote.print(' unseen');
    remote.exit = { code: 9, signal: null, reason: 'exited', final_offset: 11 };
    remote.over = true;
    await ended(told);
    expect(told.end).toMatchObject({ kind: 'exit', exit: { code: 9, reason: 'exited' }, complete: false });
  });

  it('sends what was typed in a short gap', async () => {
    const told = await attach(server);
    await connected(told);
    told.session.sendInput(Buffer.from('a'));
    await until(() => remote.input.length === 1, 'the first key is there');
    remote.cut();
    await until(() => told.states.at(-1)?.kind === 'lost', 'it is lost');
    told.session.sendInput(Buffer.from('bc'));
    await until(() => remote.input.toString() === 'abc', 'all keys are there');
  });

  it('types on behind the input of another operator while it was away', async () => {
    const told = await attach(server);
    await connected(told);
    remote.print('x');
    await until(() => told.shown.length === 1, 'it can come back to its place');
    told.session.sendInput(Buffer.from('a'));
    await until(() => remote.input.length === 1, 'the first key is there');
    remote.acknowledgeInput();
    remote.cut();
    await until(() => told.states.at(-1)?.kind === 'lost', 'it is lost');
    remote.input = Buffer.from('a of somebody else ');
    await until(() => told.states.at(-1)?.kind === 'connected', 'it is back');
    told.session.sendInput(Buffer.from('b'));
    await until(() => remote.input.toString() === 'a of somebody else b', 'it types on');
  });

  it('does not type without the pen, and types from the right place when it gets it', async () => {
    remote.mode = 'read';
    const told = await attach(server, { mode: 'read' });
    await connected(told);
    expect(told.session.mode).toBe('read');
    told.session.sendInput(Buffer.from('ignored'));
    remote.input = Buffer.from('of somebody else');
    remote.mode = 'write';
    const people = (mode: 'read' | 'write', taken: number) =>
      remote.note({ kind: 'people', mode, taken, writer: 'ada', viewers: [], text: 'ada took the pen' });
    people('write', remote.input.length);
    await until(() => told.session.mode === 'write', 'it has the pen');
    told.session.sendInput(Buffer.from('!'));
    await until(() => remote.input.toString() === 'of somebody else!', 'it types');
    people('read', remote.input.length);
    await until(() => told.session.mode === 'read', 'it has lost the pen');
    told.session.sendInput(Buffer.from('ignored'));
    remote.print('x');
    await until(() => told.shown.length === 1, 'it still watches');
    expect(remote.input.toString()).toBe('of somebody else!');
  });

  it('says when the server does not answer, and when it does again', async () => {
    const told = await attach(server);
    await connected(told);
    await until(() => told.session.roundTrip !== null, 'the round trip is known');
    remote.deaf = true;
    told.session.askLatency();
    await until(() => told.states.at(-1)?.kind === 'silent', 'the silence is noticed');
    remote.deaf = false;
    told.session.askLatency();
    await until(() => told.states.at(-1)?.kind === 'connected', 'the silence is over');
  });

  it('cuts a connection that is half open, and goes on with another one', async () => {
    let now = 0;
    const told = await attach(server, {
      clock: { monotonic: () => performance.now() + now, now: () => Date.now() + now },
    });
    await connected(told);
    remote.deaf = true;
    // In steps, as a jump would be the sleep of this machine.
    const hurrying = setInterval(() => {
      now += 350;
    }, 100);
    onTestFinished(() => clearInterval(hurrying));
    await until(() => told.states.at(-1)?.kind === 'lost', 'it is given up');
    clearInterval(hurrying);
    remote.deaf = false;
    remote.print('here again');
    await until(() => told.shown.toString() === 'here again', 'it goes on');
  });

  it('ends the session on demand, with a connection and without', async () => {
    const told = await attach(server);
    await connected(told);
    remote.onNote = ({ kind }) => kind === 'close' && remote.end({ code: null, reason: 'closed' });
    told.session.close();
    await ended(told);
    expect(told.end).toMatchObject({ kind: 'exit', exit: { reason: 'closed', code: null } });
  });

  it('lets go', async () => {
    const told = await attach(server);
    await connected(told);
    told.session.detach();
    await ended(told);
    expect(told.end).toEqual({ kind: 'detached' });
    await until(() => !remote.connected, 'the server knows');
  });
});
