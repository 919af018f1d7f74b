/** `orch exec`: what goes where, and how it ends, over real sockets. */
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Exit } from '../../src/terminal/exit.js';
import { expectGolden, type RunOptions, runOrch, transcript } from '../support/cli.js';
import { db, readings, web1, web2 } from '../support/cli-world.js';
import { type FakeApi, FakeTerminals, loggedIn, type Program, prints, startFakeApi } from '../support/fake-api.js';
import { until } from '../support/orch.js';

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi(readings);
});
afterAll(async () => {
  await api.stop();
  expect(api.violations).toEqual([]);
});

const names = new Map([web1, web2, db].map(({ node_id, name }) => [node_id, name]));

function withProgram(program: Program): FakeTerminals {
  const terminals = new FakeTerminals(api, program);
  api.answer(terminals.answers);
  onTestFinished(() => terminals.stop());
  return terminals;
}

/** Another program on each agent. */
const byName =
  (programs: Readonly<Record<string, Program>>): Program =>
  (started) =>
    programs[names.get(started.nodeId) ?? '']?.(started);

const offline: Program = ({ nodeId }) => ({
  problem: 'agent_not_connected',
  detail: `${names.get(nodeId)} is not connected`,
});

const run = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(['exec', ...argv], { ...options, env: { ...loggedIn(api), NO_COLOR: '1', ...options.env } });

/** A reader of standard output that takes its time, and keeps every byte. */
class SlowPipe extends Writable {
  readonly parts: Buffer[] = [];
  waiting: (() => void) | null = null;
  isOpen = false;

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.parts.push(Buffer.from(chunk));
    if (this.isOpen) done();
    else this.waiting = done;
  }

  /** From now on it reads all. */
  open(): void {
    this.isOpen = true;
    this.waiting?.();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.parts);
  }
}

describe('on one agent', () => {
  it('hands through every byte of both streams, and ends as the command does', async () => {
    const bytes = randomBytes(700_000);
    const stdout = new SlowPipe();
    stdout.open();
    const terminals = withProgram(prints(bytes, { err: 'careful\n', code: 7 }));
    const ran = await run(['web-01', '--timeout', '2m', '--', 'printf', '%s', '--not-mine', '-o', 'x y'], { stdout });
    expect(ran.status).toBe(7);
    expect(ran.stderr).toBe('careful\n');
    expect(stdout.bytes.equals(bytes)).toBe(true);
    expect(terminals.started).toMatchObject([
      { nodeId: web1.node_id, command: ['printf', '%s', '--not-mine', '-o', 'x y'], timeout_secs: 120 },
    ]);
  });

  it('says where the command stands when its options are taken for those of orch', async () => {
    const ran = await run(['web-01', 'uname', '-a']);
    expect(ran.status).toBe(64);
    expect(ran.stderr).toMatch(/goes after "--"\n.*orch exec web-01 -- uname -a/);
    expect((await run(['web-01', '--tiemout', '3', '--', 'id'])).stderr).toContain('--timeout');
  });

  it.each<[Partial<Exit>, number, RegExp]>([
    [{ code: 0 }, 0, /^$/],
    [{ code: 255 }, 255, /^$/],
    [{ code: null, signal: 'TERM' }, 143, /^$/],
    [{ code: null, signal: 'KILL' }, 137, /^$/],
    [{ code: null, signal: 'RTMIN+3' }, 255, /^$/],
    [{ code: null, reason: 'timed_out' }, 124, /timed out/],
    [{ code: 0, reason: 'timed_out' }, 124, /timed out/],
    [{ code: null, reason: 'closed' }, 254, /ended by an operator/],
    [{ code: null, reason: 'operator_removed' }, 254, /operator was removed/],
    [{ code: null, reason: 'agent_lost' }, 255, /agent was lost/],
    [{ code: null, reason: 'recording_failed' }, 255, /recorded/],
    [{ code: null, reason: 'failed' }, 255, /could not be started/],
    [{ code: 0, final_offset: null }, 255, /the end of its output is missing/],
  ])('%j ends with %d', async (exit, status, told) => {
    withProgram(({ session }) => {
      session.print('text\n');
      session.end(exit);
      return undefined;
    });
    const ran = await run(['web-01', '--', 'true']);
    expect(ran.status).toBe(status);
    expect(ran.stdout).toBe('text\n');
    expect(ran.stderr).toMatch(told);
  });

  it('gives the command what stands on standard input, to its end', async () => {
    const input = 'line\n'.repeat(150_000);
    const terminals = withProgram(({ session }) => {
      session.onInput = () => session.acknowledgeInput();
      const waiting = setInterval(() => {
        if (!session.eof) return;
        clearInterval(waiting);
        session.print(`${session.input.length}\n`);
        session.end();
      }, 5);
      onTestFinished(() => clearInterval(waiting));
      return undefined;
    });
    const ran = await run(['web-01', '--', 'wc', '-c'], { input });
    expect(ran).toMatchObject({ status: 0, stdout: `${input.length}\n` });
    expect(terminals.started[0]?.stdin).toBe(true);
    expect(terminals.started[0]?.session.input.toString()).toBe(input);
  });

  it.each([[[]], [['--batch', '1']]])('gives each of several commands all of standard input (%j)', async (more) => {
    const input = 'line after line\n'.repeat(100_000);
    const terminals = withProgram(({ session }) => {
      session.onInput = () => session.acknowledgeInput();
      const waiting = setInterval(() => {
        if (!session.eof) return;
        clearInterval(waiting);
        session.print(`${session.input.length}\n`);
        session.end();
      }, 5);
      onTestFinished(() => clearInterval(waiting));
      return undefined;
    });
    const ran = await run(['web-01', 'web-02', 'db-01', ...more, '--', 'wc', '-c'], { input });
    expect(ran).toMatchObject({ status: 0, stderr: expect.stringContaining('3 succeeded') });
    expect(ran.stdout.match(new RegExp(`${input.length}\n`, 'g'))).toHaveLength(3);
    expect(terminals.started.map(({ stdin }) => stdin)).toEqual([true, true, true]);
    for (const { session } of terminals.started) expect(session.input.toString()).toBe(input);
  });

  it('leaves a terminal on standard input alone by default', async () => {
    const terminals = withProgram(prints('done\n'));
    expect((await run(['web-01', '--', 'true'], { columns: 80 })).status).toBe(0);
    expect((await run(['web-01', '--stdin', '--', 'true'], { columns: 80 })).status).toBe(0);
    expect(terminals.started.map(({ stdin }) => stdin)).toEqual([false, true]);
  });

  it('ends although standard input stays open', async () => {
    withProgram(prints('done\n'));
    const stdin = new PassThrough();
    expect((await run(['web-01', '--', 'true'], { stdin })).status).toBe(0);
    expect(stdin.destroyed).toBe(true);
  });

  it.each<[string, Program]>([
    ['offline', offline],
    ['disabled', () => ({ problem: 'terminal_disabled', detail: 'remote terminals are disabled on web-01' })],
  ])('%s: it ends with 255, so that it cannot pass as a status of the command', async (name, program) => {
    withProgram(program);
    const argv = ['web-01', '--', 'true'];
    const ran = await run(argv);
    expect(ran.status).toBe(255);
    expectGolden(`exec-${name}`, transcript(['exec', ...argv], ran));
  });

  it('survives a connection that breaks in the middle', async () => {
    const bytes = randomBytes(300_000);
    const stdout = new SlowPipe();
    stdout.open();
    api.answer({
      attachTerminal: ({ headers }) => ({
        body: { ws_url: `ws://${headers.host}/api/v1/terminal/session/x/stream?ticket=0` },
      }),
    });
    withProgram(({ session }) => {
      session.cuts.push(100_000);
      session.overlap = 500;
      session.print(bytes);
      session.end({ code: 3 });
      return undefined;
    });
    const ran = await run(['web-01', '--', 'cat'], { stdout });
    expect(ran.status).toBe(3);
    expect(stdout.bytes.equals(bytes)).toBe(true);
    expect(ran.stderr).toMatch(/connection was lost[\s\S]*connected again/);
  });

  it('asks for no more than a slow reader takes', async () => {
    const stdout = new SlowPipe({ highWaterMark: 1_000 });
    const bytes = randomBytes(3_000_000);
    const terminals = withProgram(prints(bytes));
    const running = run(['web-01', '--', 'cat'], { stdout });
    await until(() => stdout.parts.length > 0, 'the reader has something');
    // Nothing tells that no more is asked for.
    await new Promise((resolve) => setTimeout(resolve, 300));
    // Nothing was taken, so that no more than the first window has come.
    expect(stdout.writableLength).toBeLessThanOrEqual(128 * 1024);
    expect(terminals.started[0]?.session.over).toBe(false);
    stdout.open();
    expect((await running).status).toBe(0);
    expect(stdout.bytes.equals(bytes)).toBe(true);
  });

  it('ends the command, and quietly itself, when whoever read its output leaves', async () => {
    const stdout = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
    });
    const terminals = withProgram(({ session }) => {
      session.onNote = ({ kind }) => kind === 'close' && session.end({ code: null, reason: 'closed' });
      session.print('first\n');
      return undefined;
    });
    const ran = await run(['web-01', '--', 'yes'], { stdout });
    expect(ran).toMatchObject({ status: 141, stderr: '' });
    expect(terminals.started[0]?.session.over).toBe(true);
  });

  it('says so when its output cannot be written', async () => {
    const stdout = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write ENOSPC'), { code: 'ENOSPC' })),
    });
    const terminals = withProgram(({ session }) => {
      session.onNote = ({ kind }) => kind === 'close' && session.end({ code: null, reason: 'closed' });
      session.print('first\n');
      return undefined;
    });
    const ran = await run(['web-01', '--', 'yes'], { stdout });
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('could not be written: write ENOSPC') });
    expect(terminals.started[0]?.session.over).toBe(true);
  });

  it('on a terminal its colours stay, and nothing else that would steer it', async () => {
    const text =
      'a\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b]52;c;ZXZpbA==\x1b\\b\x1b[2J\x1b[6n\x1bPq#0\x1b\\c\x07\x1b[?1049hd\x9b31me\u202ef\r\n';
    withProgram(prints(text));
    const shown = await run(['web-01', '--', 'x'], { columns: 80, env: { NO_COLOR: '', FORCE_COLOR: '1' } });
    expect(shown.stdout).toBe('a\x1b[31mred\x1b[0m bcd\\x9b31me\\u202ef\r\n\x1b[0m');
    withProgram(prints(text));
    expect((await run(['web-01', '--', 'x'], { columns: 80 })).stdout).toBe('ared bcd\\x9b31me\\u202ef\r\n');
    withProgram(prints(text));
    expect((await run(['web-01', '--', 'x'])).stdout).toBe(text);
  });

  it('is one object for programs', async () => {
    withProgram(prints('out\n\x1b[2J', { err: 'err\n', code: 3 }));
    const ran = await run(['web-01', '-o', 'json', '--', 'x']);
    expect(ran.status).toBe(3);
    expect(ran.stdout).not.toContain('\x1b');
    expect(JSON.parse(ran.stdout)).toEqual({
      node_id: web1.node_id,
      name: 'web-01',
      exit_status: 3,
      exit_code: 3,
      signal: null,
      reason: 'exited',
      complete: true,
      stdout: 'out\n\x1b[2J',
      stderr: 'err\n',
      truncated: false,
      error: null,
    });
  });

  it('of which the first MiB of each stream is kept', async () => {
    withProgram(prints('x'.repeat(1_500_000)));
    const { stdout } = await run(['web-01', '-o', 'json', '--', 'x']);
    const body = JSON.parse(stdout) as { readonly stdout: string };
    expect(body).toMatchObject({ truncated: true, exit_code: 0 });
    expect(body.stdout.length).toBe(1024 * 1024);
  });
});

describe('on several agents', () => {
  const fleet = ['web-01', 'web-02', 'db-01'];
  /** Lines of different agents come in any order. */
  const sorted = (text: string) => text.split('\n').sort().join('\n').trim();

  it('puts the name of the agent before each line, and tells who failed', async () => {
    withProgram(
      byName({
        'web-01': prints('one\ntwo\n'),
        'web-02': prints('no line end', { err: 'bad\n', code: 3 }),
        'db-01': offline,
      }),
    );
    const argv = [...fleet, '--', 'x'];
    const ran = await run(argv);
    expect(ran.status).toBe(3);
    expect(sorted(ran.stdout)).toBe('web-01 | one\nweb-01 | two\nweb-02 | no line end');
    const told = sorted(ran.stderr);
    expect(told).toContain('web-02 | bad');
    expectGolden('exec-summary', told);
  });

  it('never mixes lines, however they come', async () => {
    const long = (name: string) => `${name.repeat(20_000)}\n`;
    withProgram(({ nodeId, session }) => {
      const name = names.get(nodeId) ?? '';
      void (async () => {
        for (let line = 0; line < 20; line += 1) {
          const text = long(name.at(-1) ?? '');
          session.print(text.slice(0, 700 * line));
          await new Promise((resolve) => setTimeout(resolve, 1));
          session.print(text.slice(700 * line));
        }
        session.end();
      })();
      return undefined;
    });
    const { stdout, status } = await run(['web-01', 'web-02', '--', 'x']);
    expect(status).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.length).toBe(40);
    for (const line of lines) expect(line).toMatch(/^web-01 \| 1{20000}$|^web-02 \| 2{20000}$/);
  });

  it('lets no program write in the name of another agent on a terminal', async () => {
    withProgram(byName({ 'web-01': prints('x\rweb-02 | fine\b\b\x1b[1A\x1b[31mred\nplain\n'), 'web-02': prints('') }));
    const { stdout } = await run(['web-01', 'web-02', '--', 'x'], {
      columns: 80,
      env: { NO_COLOR: '', FORCE_COLOR: '1' },
    });
    const plain = stdout.replaceAll(/\x1b\[3?\d?m/g, '');
    expect(plain.split('\n').filter((line) => line !== '')).toEqual([
      'web-01 | x',
      'web-01 | web-02 | finered',
      'web-01 | plain',
      // The colour ends with its line.
    ]);
    expect(stdout).toContain('red\x1b[0m\n');
  });

  it('shows agents with equal output together with --group', async () => {
    withProgram(
      byName({
        'web-01': prints('6.1\n'),
        'web-02': prints('6.1\n'),
        'db-01': prints('5.10', { err: 'old\n', code: 1 }),
      }),
    );
    const argv = [...fleet, '--group', '--', 'uname', '-r'];
    const ran = await run(argv);
    expect(ran.status).toBe(3);
    expectGolden('exec-group', transcript(['exec', ...argv], ran));
  });

  it('ends with 5 when only offline agents were missed', async () => {
    withProgram(byName({ 'web-01': prints('up\n'), 'web-02': prints('up\n'), 'db-01': offline }));
    expect((await run([...fleet, '--', 'x'])).status).toBe(5);
    withProgram(prints('up\n'));
    expect((await run([...fleet, '--', 'x'])).status).toBe(0);
  });

  it('runs on so many at a time', async () => {
    const later: Program = ({ session }) => {
      setTimeout(() => session.end(), 50);
      return undefined;
    };
    const one = withProgram(later);
    await run([...fleet, '--batch', '1', '--', 'x']);
    expect(one.busiest).toBe(1);
    const two = withProgram(later);
    await run([...fleet, '--batch', '2', '--', 'x']);
    expect(two.busiest).toBe(2);
  });

  it('gives programs one line for each agent', async () => {
    withProgram(byName({ 'web-01': prints('one\n'), 'web-02': prints('two\n', { code: 3 }), 'db-01': offline }));
    const ran = await run([...fleet, '-o', 'json', '--', 'x']);
    expect(ran).toMatchObject({ status: 3, stderr: '' });
    const bodies = ran.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { readonly name: string });
    expect(bodies.sort((a, b) => (a.name < b.name ? -1 : 1))).toMatchObject([
      {
        name: 'db-01',
        exit_status: 255,
        exit_code: null,
        error: { code: 'agent_not_connected', message: 'db-01 is not connected' },
      },
      { name: 'web-01', exit_status: 0, stdout: 'one\n', error: null },
      { name: 'web-02', exit_status: 3, exit_code: 3, stdout: 'two\n' },
    ]);
    withProgram(byName({ 'web-01': prints('one\n'), 'web-02': prints('two\n', { code: 3 }) }));
    expect((await run(['web-01', 'web-02', '-o', 'name', '--', 'x'])).stdout).toBe('web-01\n');
  });

  it('stops when no agent may do it', async () => {
    withProgram(() => ({ problem: 'role_forbidden', detail: 'your role is viewer' }));
    const ran = await run([...fleet, '--', 'x']);
    expect(ran.status).toBe(255);
    expect(ran.stderr).toContain('your role is viewer');
  });
});

describe('by a selector', () => {
  it('asks on a terminal, and shows where it would run', async () => {
    const terminals = withProgram(prints('up\n'));
    const argv = ['-l', 'platform=linux', '--', 'sh', '-c', 'echo $HOME'];
    const no = await run(argv, { columns: 80, answers: [{ at: /\(y\/N\)/, type: 'n\n' }] });
    expect(no.status).toBe(255);
    expect(terminals.started).toEqual([]);
    expect(no.stderr).toMatch(/web-01[\s\S]*web-02/);
    expect(no.stderr).toContain("sh -c 'echo $HOME'");
    const yes = await run(argv, { columns: 80, answers: [{ at: /\(y\/N\)/, type: 'y\n' }] });
    expect(yes.status).toBe(0);
    expect(terminals.started.length).toBe(3);
  });

  it.each([
    ['no-consent', ['-l', 'role=web', '--', 'uptime']],
    ['no-command', ['web-01', 'uptime']],
    ['no-agent', ['--', 'uptime']],
    ['both-ways', ['web-01', '-l', 'role=web', '--', 'uptime']],
    ['timeout-too-long', ['web-01', '--timeout', '3d', '--', 'uptime']],
  ])('%s is refused', async (name, argv) => {
    const ran = await run(argv);
    expect(ran.status).toBe(64);
    expectGolden(`exec-${name}`, transcript(['exec', ...argv], ran));
  });

  it('that matches nothing is an error, unless that is allowed', async () => {
    api.answer({ listAgents: { body: [] } });
    onTestFinished(() => api.answer(readings));
    const argv = ['-l', 'role=none', '--yes', '--', 'x'];
    expect(await run(argv)).toMatchObject({ status: 255, stderr: expect.stringContaining('role=none') });
    expect((await run(['--allow-empty', ...argv])).status).toBe(0);
  });
});

describe('interrupted', () => {
  /** A command that ends when it gets one of these. */
  const endsAt =
    (...signals: readonly string[]): Program =>
    ({ session }) => {
      session.print('running\n');
      const waiting = setInterval(() => {
        const got = session.signals.find((signal) => signals.includes(signal));
        const closed = session.notes.some(({ kind }) => kind === 'close');
        if (got === undefined && !closed) return;
        clearInterval(waiting);
        session.end(got === undefined ? { code: null, reason: 'closed' } : { code: null, signal: got });
      }, 5);
      onTestFinished(() => clearInterval(waiting));
      return undefined;
    };

  async function start(argv: readonly string[], program: Program) {
    const terminals = withProgram(program);
    const interrupts = new EventEmitter();
    const stdout = new SlowPipe();
    stdout.open();
    const running = run(argv, { interrupts, stdout });
    await until(() => stdout.bytes.includes('running'), 'it runs');
    const session = () => terminals.started[0]?.session;
    return { running, interrupts, terminals, session };
  }

  it('Ctrl-C is the command\u2019s', async () => {
    const { running, interrupts, session } = await start(['web-01', '--', 'x'], endsAt('INT'));
    interrupts.emit('SIGINT');
    expect((await running).status).toBe(130);
    expect(session()?.signals).toEqual(['INT']);
  });

  it('twice kills it', async () => {
    const { running, interrupts, session } = await start(['web-01', '--', 'x'], endsAt('KILL'));
    interrupts.emit('SIGINT');
    await until(() => session()?.signals.length === 1, 'the first has come');
    interrupts.emit('SIGINT');
    expect((await running).status).toBe(137);
    expect(session()?.signals).toEqual(['INT', 'KILL']);
  });

  it('three times leaves', async () => {
    const { running, interrupts, session } = await start(['web-01', '--', 'x'], ({ session: remote }) => {
      remote.print('running\n');
      return undefined;
    });
    for (let press = 0; press < 3; press += 1) interrupts.emit('SIGINT');
    expect((await running).status).toBe(130);
    await until(() => session()?.connected === false, 'it is let go');
    expect(session()?.notes).toContainEqual({ kind: 'close' });
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ])('%s ends the command', async (signal, status) => {
    const { running, interrupts, session } = await start(['web-01', '--', 'x'], endsAt());
    interrupts.emit(signal);
    expect((await running).status).toBe(status);
    expect(session()?.exit).toMatchObject({ reason: 'closed' });
  });

  it('among several, no further one begins', async () => {
    const { running, interrupts, terminals } = await start(
      ['web-01', 'web-02', '--batch', '1', '--', 'x'],
      endsAt('INT'),
    );
    interrupts.emit('SIGINT');
    const ran = await running;
    expect(ran.status).toBe(130);
    expect(terminals.started.length).toBe(1);
    expect(ran.stderr).toMatch(/not started: interrupted.*web-02/);
  });
});
