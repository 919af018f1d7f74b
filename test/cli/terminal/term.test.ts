import { describe, expect, it, vi } from 'vitest';
import { snapshotFrame } from '../../../src/terminal/frames.js';
import { until } from '../../support/orch.js';
import { attached, runTerm, type TermRun } from './term-in-pty.js';

vi.setConfig({ testTimeout: 120_000 });

/** The modes that a full-screen program switches on. */
const FULL_SCREEN = '\x1b[?1049h\x1b[?1h\x1b=\x1b[?25l\x1b[?1002h\x1b[?1006h\x1b[?1004h\x1b[?2004h\x1b[2;10r\x1b[31m';

const withPid = (command: string): string => `sh -c 'echo "PID=$$="; exec "$@"' sh ${command}`;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function expectTidy({ pty }: TermRun): Promise<void> {
  await until(() => pty.screen.buffer.active.type === 'normal', 'the normal screen is back');
  expect(pty.screen.modes).toMatchObject({
    applicationCursorKeysMode: false,
    applicationKeypadMode: false,
    bracketedPasteMode: false,
    mouseTrackingMode: 'none',
    sendFocusMode: false,
    insertMode: false,
    wraparoundMode: true,
  });
  const off = pty.output.lastIndexOf('\x1b[?25l');
  if (off >= 0) expect(pty.output.lastIndexOf('\x1b[?25h')).toBeGreaterThan(off);
}

describe('orch term', () => {
  it('opens a session, shows it, types into it, and ends as its program does', async () => {
    const run = await runTerm(['term', 'web-01', '--shell', '/bin/zsh'], { cols: 100, rows: 30 });
    await attached(run);
    const { session, requests } = run.server;
    expect(requests).toHaveLength(2);
    expect(requests[1]).toContain('cols=100&rows=30&shell=%2Fbin%2Fzsh&term=xterm-256color');
    session.print('remote$ ');
    await run.pty.displays(/^remote\$/);
    await run.pty.shows(/this session is recorded/);
    run.pty.write('echo hi\r');
    await until(() => session.input.toString() === 'echo hi\r', 'it is typed');
    // Nothing is done to the output on its way: a line feed alone stays in its column.
    session.print('\r\nab\ncd\r\n');
    await run.pty.displays(/^ {2}cd$/);
    session.end({ code: 42 });
    expect(await run.finished()).toEqual({ status: 42, restored: true });
    await expectTidy(run);
  });

  it('opens a session of the size that was asked for, and keeps it', async () => {
    const run = await runTerm(['term', 'web-01', '--cols', '132', '--rows', '43'], { cols: 100, rows: 30 });
    await attached(run);
    expect(run.server.requests[1]).toContain('cols=132&rows=43');
    run.pty.resize(90, 20);
    run.pty.write('x');
    const { session } = run.server;
    await until(() => session.input.toString() === 'x', 'it is typed');
    expect(session.sizes.every((size) => size === '132x43')).toBe(true);
    session.end({ code: 0 });
    expect(await run.finished()).toEqual({ status: 0, restored: true });
  });

  it.each([
    [{ code: 0 }, 0],
    [{ code: 255 }, 255],
    [{ code: null, signal: 'TERM' }, 143],
    [{ code: null, signal: 'KILL' }, 137],
    [{ code: null, reason: 'closed' as const }, 254],
    [{ code: null, reason: 'operator_removed' as const }, 254],
    [{ code: null, reason: 'idle' as const }, 255],
    [{ code: null, reason: 'disabled' as const }, 255],
    [{ code: null, reason: 'agent_lost' as const }, 255],
    [{ code: null }, 255],
  ])('ends %j with the status %i', async (exit, status) => {
    const run = await runTerm(['term', 'web-01']);
    await attached(run);
    run.server.session.print(FULL_SCREEN);
    run.server.session.end(exit);
    expect(await run.finished()).toEqual({ status, restored: true });
    await expectTidy(run);
  });

  it('sends a terminal without control sequences none of its own', async () => {
    const run = await runTerm(['term', 'web-01'], { around: (command) => `TERM=dumb ${command}` });
    await attached(run);
    run.server.session.print('plain \x1b[1mtext\r\n$ ');
    await run.pty.shows(/text/);
    run.pty.write('\r~?');
    await run.pty.shows(/orch: .*~\. /);
    run.pty.write('~.');
    expect(await run.finished()).toEqual({ status: 255, restored: true });
    expect(run.pty.output.match(/\x1b[^m]*m|\x1b/g)).toEqual(['\x1b[1m']);
  });

  it('detaches at ~. with the terminal as it was', async () => {
    const run = await runTerm(['term', 'web-01']);
    await attached(run);
    run.server.session.print(FULL_SCREEN);
    await until(() => run.pty.screen.buffer.active.type === 'alternate', 'the program has the screen');
    run.pty.write('~.');
    expect(await run.finished()).toEqual({ status: 255, restored: true });
    await run.pty.shows(/orch term attach 01JQ2Z6T0V5X8Y4M3N7P9R1S2T/);
    await expectTidy(run);
    // The title of before is the only one that is kept, and it is given back.
    expect(run.pty.output.match(/\x1b\[2[23];0t/g)).toEqual(['\x1b[22;0t', '\x1b[23;0t']);
    expect(run.server.session.input.toString()).toBe('');
  });

  it('detaches from a terminal that has stopped taking output', async () => {
    const run = await runTerm(['term', 'web-01'], { around: withPid });
    await attached(run);
    const [, pid] = await run.pty.shows(/PID=(\d+)=/);
    run.pty.pause();
    run.server.session.print(Buffer.alloc(3_000_000, 'flood\r\n'));
    // Time for the terminal to be full; too little of it makes the test weaker, not red.
    await new Promise((resolve) => setTimeout(resolve, 500));
    run.pty.write('\r~.');
    await until(() => !isAlive(Number(pid)), 'orch has ended');
    run.pty.resume();
    expect(await run.finished()).toEqual({ status: 255, restored: true });
  });

  it.each(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)('detaches at %s', async (signal) => {
    const run = await runTerm(['term', 'web-01'], {
      around: withPid,
    });
    await attached(run);
    run.server.session.print(FULL_SCREEN);
    await until(() => run.pty.screen.buffer.active.type === 'alternate', 'the program has the screen');
    const [, pid] = await run.pty.shows(/PID=(\d+)=/);
    process.kill(Number(pid), signal);
    // SIGHUP says that the window is closed, as with every command.
    expect(await run.finished()).toEqual({ status: signal === 'SIGHUP' ? 129 : 255, restored: true });
    await run.pty.shows(/The session goes on/);
    await expectTidy(run);
  });

  it('knows its escapes, and sends what is none', async () => {
    const run = await runTerm(['term', 'web-01']);
    await attached(run);
    const { session } = run.server;
    await until(() => session.sizes.length > 0, 'the size is reported');
    run.pty.write('~r');
    await until(() => session.notes.some(({ kind }) => kind === 'redraw'), 'a redraw is asked for');
    run.pty.write('~s');
    // It is asked for once at the beginning too, without a word.
    const asked = () => session.notes.filter(({ kind }) => kind === 'ask_latency').length;
    await until(() => asked() > 1, 'the latency is asked for');
    session.note({ kind: 'latency', agent_ms: 12.34 });
    await run.pty.shows(/from there to the agent 12\.3 ms/);
    run.pty.write('~?');
    await run.pty.shows(/~\^Z +suspend/);
    run.pty.write('~~');
    await until(() => session.input.toString() === '~', 'a tilde is typed');
    run.pty.write('a~.\r~x\x1b[200~\r~.\x1b[201~');
    const typed = '~a~.\r~x\x1b[200~\r~.\x1b[201~';
    await until(() => session.input.toString() === typed, 'the rest is typed as it is');
    session.onNote = ({ kind }) => kind === 'close' && session.end({ code: null, reason: 'closed' });
    run.pty.write('\r~K');
    expect(await run.finished()).toEqual({ status: 254, restored: true });
  });

  it('has no escapes with -e none, and another one with -e', async () => {
    const none = await runTerm(['term', 'web-01', '-e', 'none']);
    await attached(none);
    none.pty.write('~.');
    await until(() => none.server.session.input.toString() === '~.', 'it is typed');
    none.server.session.end();
    expect(await none.finished()).toMatchObject({ status: 0 });
    const other = await runTerm(['term', 'web-01', '-e', '^]']);
    await attached(other);
    other.pty.write('\x1d.');
    expect(await other.finished()).toEqual({ status: 255, restored: true });
  });

  it('tells the size when the window has come to rest', async () => {
    const run = await runTerm(['term', 'web-01']);
    await attached(run);
    const { session } = run.server;
    await until(() => session.sizes.includes('80x24'), 'the size is reported');
    for (let cols = 81; cols <= 90; cols += 1) run.pty.resize(cols, 40);
    await until(() => session.sizes.includes('90x40'), 'the new size is reported');
    expect(session.sizes.length).toBeLessThan(8);
    run.pty.write('~.');
    await run.finished();
  });

  it('says when the connection is lost, and goes on', async () => {
    const run = await runTerm(['term', 'web-01']);
    await attached(run);
    const { session, problems } = run.server;
    session.print('before');
    await run.pty.displays(/before/);
    problems.push(...Array.from({ length: 5 }, () => 'shutting_down' as const));
    session.cut();
    await run.pty.shows(/orch: (?:.*); trying again/);
    session.print(' after');
    await run.pty.shows(/connected to the orchestrator again/);
    await run.pty.shows(/ after/);
    session.end();
    expect(await run.finished()).toEqual({ status: 0, restored: true });
  });

  it.each([
    [true, /transcript\s+01JQ2Z6T0V5X8Y4M3N7P9R1S2T/],
    [false, /is not recorded, so it cannot be read later/],
  ])('says how much a picture stood in for, and where that is: recorded %j', async (recorded, place) => {
    const run = await runTerm(['term', 'web-01']);
    const { session, problems } = run.server;
    session.recorded = recorded;
    await attached(run);
    session.print('seen\r\n');
    await run.pty.displays(/seen/);
    const sleep = async (bytes: number) => {
      problems.push('shutting_down');
      session.cut();
      await until(() => !session.connected, 'the connection is gone');
      session.snapshotFor = () => ({ cols: 80, rows: 24, bytes: Buffer.from('\x1b[H\x1b[2Jremote$ ') });
      session.print(Buffer.alloc(bytes, 'flood\r\n'));
      session.output.dropBefore(session.output.end);
    };
    await sleep(3 * 1024 * 1024);
    await run.pty.displays(/^orch: 3\.0 MiB of output was not shown here, only the screen behind it/);
    await run.pty.shows(place);
    await run.pty.displays(/^remote\$/);
    await sleep(1024 * 1024);
    await run.pty.displays(/^orch: 1\.0 MiB of output was not shown here \(4\.0 MiB so far\)/);
    session.end();
    expect(await run.finished()).toEqual({ status: 0, restored: true });
  });

  it('says nothing of output that a program has drawn over, nor of a screen that is drawn on demand', async () => {
    const run = await runTerm(['term', 'web-01']);
    await attached(run);
    const { session, problems } = run.server;
    session.print('\x1b[?1049h');
    await until(() => run.pty.screen.buffer.active.type === 'alternate', 'the program has the screen');
    problems.push('shutting_down');
    session.cut();
    await until(() => !session.connected, 'the connection is gone');
    session.snapshotFor = () => ({ cols: 80, rows: 24, bytes: Buffer.from('\x1b[?1049h\x1b[H\x1b[2Jdrawn') });
    session.print(Buffer.alloc(100_000, 'frames'));
    session.output.dropBefore(session.output.end);
    await run.pty.displays(/drawn/);
    session.print('\x1b[?1049lback');
    await run.pty.displays(/back/);
    session.frame(
      snapshotFrame({ cols: 80, rows: 24, offset: session.output.end }, Buffer.from('\x1b[H\x1b[2Jon demand')),
    );
    await run.pty.displays(/on demand/);
    session.end();
    expect(await run.finished()).toEqual({ status: 0, restored: true });
    expect(run.pty.output).not.toMatch(/was not shown/);
  });

  it('keeps the line that is being typed whole when it has something to say', async () => {
    const run = await runTerm(['term', 'web-01'], { cols: 60, rows: 8 });
    await attached(run);
    const { session } = run.server;
    for (const [text, before] of [
      ['ada joined to watch', 'one\r\n'],
      ['ada took over whatever there is to be taken over in this terminal here', 'two\r\n'.repeat(12)],
    ] as const) {
      session.print(`${before}remote$ ls -l`);
      await run.pty.displays(/^remote\$ ls -l$/);
      session.note({ kind: 'people', mode: 'write', taken: 0, writer: 'root', viewers: [], text });
      await run.pty.displays(new RegExp(`^orch: ${text.slice(0, 8)}`));
      session.print(' /etc');
      await run.pty.displays(/^remote\$ ls -l \/etc$/);
      expect(run.pty.lines.join('\n')).toMatch(/^orch: ada .*\n(?: {2}.*\n)?remote\$ ls -l \/etc$/m);
      session.print('\r\n');
    }
    run.pty.write('\r~.');
    await run.finished();
  });

  it('says its last words in a line of their own', async () => {
    const run = await runTerm(['term', 'web-01']);
    await attached(run);
    run.server.session.print('\x1b[32mremote$\x1b[0m ');
    await run.pty.displays(/remote\$/);
    run.pty.write('~.');
    await run.finished();
    await run.pty.displays(/^Detached\. The session goes on/);
    await run.pty.displays(/^remote\$ *$/);
  });

  it('suspends and comes back', async () => {
    const run = await runTerm(['term', 'web-01'], {
      around: (command) => `set -m; ${command}; echo "STOPPED=$?="; stty -g; sleep 0.2; fg >/dev/null`,
    });
    await attached(run);
    const { session } = run.server;
    session.print(`${FULL_SCREEN}full screen`);
    await run.pty.displays(/full screen/);
    run.pty.write('~\x1a');
    await run.pty.shows(/STOPPED=148=/);
    await until(() => session.notes.some(({ kind }) => kind === 'redraw'), 'a redraw is asked for');
    run.pty.write('typed');
    await until(() => session.input.toString() === 'typed', 'it goes on');
    session.end({ code: 3 });
    expect(await run.finished()).toEqual({ status: 3, restored: true });
    await expectTidy(run);
  });

  it('takes its input from a file, and ends it as a person at the keys would', async () => {
    const run = await runTerm(['term', 'web-01'], { around: (command) => `printf 'date\\nexit 5\\n' | ${command}` });
    await attached(run);
    const { session } = run.server;
    await until(() => session.input.toString().endsWith('\x04'), 'all is typed');
    expect(session.input.toString()).toMatch(/^date\nexit 5\n\x04+$/);
    session.print('the date\r\n');
    session.end({ code: 5 });
    expect(await run.finished()).toEqual({ status: 5, restored: true });
    await run.pty.shows(/the date/);
  });

  it('fails with 255 and says why, when there is no such node, and with 64 for wrong words', async () => {
    const missing = await runTerm(['term', 'nowhere']);
    expect(await missing.finished()).toEqual({ status: 255, restored: true });
    await missing.pty.shows(/there is no agent "nowhere"/);
    const words = await runTerm(['term', 'web-01', '-e', 'toolong']);
    expect(await words.finished()).toMatchObject({ status: 64 });
  });
});

describe('orch term attach', () => {
  it('watches while another operator types', async () => {
    const run = await runTerm(['term', 'attach', '01JQ2Z6T0V5X8Y4M3N7P9R1S2T'], {
      cols: 60,
      rows: 10,
      around: (command) => `sleep 0; ${command}`,
    });
    run.server.problems.push('terminal_pen_taken');
    const { session } = run.server;
    session.mode = 'read';
    session.print('history');
    session.snapshotFor = () => ({ cols: 120, rows: 40, bytes: Buffer.from('\x1b[H\x1b[2JSCREEN') });
    await attached(run);
    expect(run.server.attaches.at(-1)).toEqual({ mode: 'read', take: false });
    await run.pty.displays(/SCREEN/);
    await run.pty.shows(/bob types, you watch[\s\S]*is 120x40 and yours\s+60x10/);
    run.pty.write('keys');
    await run.pty.shows(/you only watch/);
    run.pty.write('\r~w');
    await until(() => session.notes.some(({ kind }) => kind === 'ask_pen'), 'the pen is asked for');
    expect(session.input.toString()).toBe('');
    expect(session.sizes).toEqual([]);
    run.pty.write('\r~.');
    expect(await run.finished()).toEqual({ status: 255, restored: true });
    await expectTidy(run);
  });

  it('never asks for the pen with --read-only', async () => {
    const run = await runTerm(['term', 'attach', '01JQ2Z6T0V5X8Y4M3N7P9R1S2T', '--read-only']);
    const { session } = run.server;
    session.mode = 'read';
    session.print('history');
    session.snapshotFor = () => ({ cols: 80, rows: 24, bytes: Buffer.from('\x1b[H\x1b[2JSCREEN') });
    await attached(run);
    await run.pty.shows(/you watch/);
    run.pty.write('~w');
    await run.pty.shows(/with --read-only you never type; attach without it to type/);
    run.pty.write('~.');
    expect(await run.finished()).toEqual({ status: 255, restored: true });
    expect(session.notes.filter(({ kind }) => kind === 'ask_pen')).toEqual([]);
  });

  it('takes the pen with --take', async () => {
    const run = await runTerm(['term', 'attach', '01JQ2Z6T0V5X8Y4M3N7P9R1S2T', '--take']);
    await attached(run);
    expect(run.server.attaches).toEqual([{ mode: 'write', take: true }]);
    run.pty.write('mine');
    await until(() => run.server.session.input.toString() === 'mine', 'it types');
    run.pty.write('\r~.');
    await run.finished();
  });
});
