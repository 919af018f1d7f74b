/** Commands on pipes, from the request to the exit. */
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { eofFrame, signalFrame } from '../../../src/terminal/frames.js';
import { isRoot, needs, place } from '../../support/agent.js';
import { AgentEnd } from '../../support/agent-terminal.js';
import { until } from '../../support/orch.js';

const sh = (script: string): readonly string[] => ['sh', '-c', script];

describe('a command', () => {
  it('keeps its output and its errors apart, in the order in which they came', async () => {
    const agent = await AgentEnd.start();
    const steps = place();
    const step = (name: string) => `until [ -e ${steps}/${name} ]; do sleep 0.01; done`;
    const script = `echo one; ${step('a')}; echo two >&2; ${step('b')}; echo three; exit 9`;
    const { id, relay } = agent.exec(sh(script));
    // Each piece is there before the next one is written: two pipes have no order among themselves.
    await relay.shows('one\n');
    writeFileSync(`${steps}/a`, '');
    await relay.shows('two\n');
    writeFileSync(`${steps}/b`, '');
    expect(await agent.answer(id)).toMatchObject({ shell: null, error: null });
    expect(await relay.ended()).toEqual({ code: 9, signal: null, reason: 'exited', final_offset: 14 });
    expect(relay.pieces.map(({ stream, bytes }) => [stream, bytes.toString()])).toEqual([
      ['out', 'one\n'],
      ['err', 'two\n'],
      ['out', 'three\n'],
    ]);
    await agent.empty();
  });

  it('has arguments that no shell reads, an environment without a terminal, and nothing to read', async () => {
    const agent = await AgentEnd.start();
    const words = ['$HOME', '`id`', 'a b', '"', "'", '-n', '', '*'];
    const printed = agent.exec(['printf', '<%s>\n', ...words]);
    await printed.relay.ended();
    expect(printed.relay.text()).toBe(words.map((word) => `<${word}>\n`).join(''));
    const env = agent.exec(sh('env; cat; tty; echo fds=$(ls /proc/$$/fd)'));
    await env.relay.ended();
    expect(env.relay.text()).toMatch(/ORCH_OPERATOR=ada\n/);
    expect(env.relay.text()).not.toMatch(/TERM=|NODE_|VITEST/);
    expect(env.relay.text()).toContain('not a tty');
  });

  it('has the variables of the operator that the machine accepts, and its own in place of the others', async () => {
    const agent = await AgentEnd.start();
    const env = [
      'LANG=POSIX',
      'COLORTERM=truecolor',
      'LD_PRELOAD=/tmp/x.so',
      'PATH=/tmp',
      'LC_ALL=/tmp/x',
      'EDITOR=vi',
    ];
    const standard = agent.exec(['env'], { env });
    await standard.relay.ended();
    expect(standard.relay.text()).toMatch(/^LANG=POSIX$/m);
    expect(standard.relay.text()).toMatch(/^COLORTERM=truecolor$/m);
    expect(standard.relay.text()).not.toMatch(/LD_PRELOAD|LC_ALL|EDITOR|PATH=\/tmp/);
    agent.settings = { ...agent.settings, 'remote_terminal.accept_env': ['EDITOR'] };
    const other = agent.exec(['env'], { env });
    await other.relay.ended();
    expect(other.relay.text()).toMatch(/^EDITOR=vi$/m);
    expect(other.relay.text()).not.toMatch(/COLORTERM|LANG=POSIX/);
  });

  it('runs on a terminal when that is asked for, and the answer says so', async () => {
    const agent = await AgentEnd.start();
    const asked = { tty: true, cols: 100, rows: 30, term: 'vt100' };
    const { id, relay } = agent.exec(sh('tty; stty size; echo $TERM; read -r x; echo "got $x"; exit 9'), asked);
    expect(await agent.answer(id)).toMatchObject({ error: null, tty: true });
    await until(() => relay.text().includes('vt100'), 'it runs');
    relay.type('typed\r');
    expect(await relay.ended()).toMatchObject({ code: 9, reason: 'exited' });
    expect(relay.text()).toMatch(/^\/dev\/pts\/\d+\n30 100\nvt100\ntyped\ngot typed\n$/);
    const piped = agent.exec(sh('tty'));
    expect((await agent.answer(piped.id)).tty).toBeUndefined();
    await piped.relay.ended();
  });

  it.each([
    ['again by name', 'cat /dev/stdin; echo out > /dev/stdout; echo err > /dev/stderr', 'typed\nout\n'],
    ['by name although its input has ended', 'cat; cat /dev/stdin; echo err > /dev/stderr', 'typed\n'],
  ])('can open its streams %s', async (_, script, output) => {
    const agent = await AgentEnd.start();
    const { relay } = agent.exec(sh(script), { stdin: true });
    relay.type('typed\n');
    await until(() => relay.inputTaken === 6, 'it is taken');
    relay.socket?.send(eofFrame());
    expect(await relay.ended()).toMatchObject({ code: 0 });
    expect([relay.text('out'), relay.text('err')]).toEqual([output, 'err\n']);
  });

  it('reads megabytes to their end, and what it does not read does not matter', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.exec(['wc', '-c'], { stdin: true });
    const text = Buffer.alloc(5_000_000, 'x');
    relay.type(text);
    await until(() => relay.inputTaken === text.length, 'all is taken');
    relay.socket?.send(eofFrame());
    await relay.ended();
    expect(relay.text().trim()).toBe('5000000');
    const deaf = agent.exec(sh('exec 0<&-; sleep 0.3; exit 4'), { stdin: true });
    deaf.relay.type(text);
    expect(await deaf.relay.ended()).toMatchObject({ code: 4 });
  });

  it('writes megabytes to its last byte', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.exec(
      sh('head -c 8000000 /dev/zero | tr "\\0" x; head -c 100000 /dev/zero | tr "\\0" e >&2'),
    );
    expect(await relay.ended()).toMatchObject({ code: 0, final_offset: 8_100_000 });
    const size = (stream: 'out' | 'err') =>
      relay.pieces.filter((piece) => piece.stream === stream).reduce((sum, { bytes }) => sum + bytes.length, 0);
    expect([size('out'), size('err')]).toEqual([8_000_000, 100_000]);
  });

  it('ends with its status', async () => {
    const agent = await AgentEnd.start();
    for (const code of [0, 1, 126, 255]) {
      const { relay } = agent.exec(sh(`exit ${code}`));
      expect(await relay.ended()).toMatchObject({ code, signal: null, reason: 'exited' });
    }
  });

  it('gets signals, and ends with them', async () => {
    const agent = await AgentEnd.start();
    // Without "exec", a signal just after the echo can miss the program that the shell is starting, and the shell waits for it.
    const { relay } = agent.exec(sh('echo up; exec sleep 60'));
    await relay.shows('up');
    relay.socket?.send(signalFrame('INT'));
    expect(await relay.ended()).toMatchObject({ code: null, signal: 'INT' });
  });

  it('is ended when its time is over, with whatever it has started, even when it does not want to', async () => {
    const agent = await AgentEnd.start();
    const meek = agent.exec(sh('trap "echo bye; exit 0" TERM; echo up; sleep 60 & wait'), { timeout_secs: 1 });
    const stubborn = agent.exec(sh('trap "" TERM; sleep 300 & echo $!; while :; do sleep 1; done'), {
      timeout_secs: 1,
    });
    expect(await meek.relay.ended()).toMatchObject({ code: 0, reason: 'timed_out' });
    expect(meek.relay.text()).toBe('up\nbye\n');
    expect(await stubborn.relay.ended()).toMatchObject({ code: null, signal: 'KILL', reason: 'timed_out' });
    const child = Number(stubborn.relay.text().trim());
    await until(() => !isAlive(child), 'its child is gone');
  });

  it('is over when it has ended, although something in the background keeps its pipes', async () => {
    const agent = await AgentEnd.start();
    const { id, relay } = agent.exec(sh('sleep 300 & echo $!'));
    expect(await relay.ended()).toMatchObject({ code: 0, reason: 'exited' });
    const child = Number(relay.text().trim());
    expect(isAlive(child)).toBe(true);
    process.kill(child, 'SIGKILL');
    agent.close(id);
  });

  it('runs as the user of the settings', async (context) => {
    needs(context, isRoot, 'root');
    const agent = await AgentEnd.start();
    agent.settings = { ...agent.settings, 'remote_terminal.user': 'nobody' };
    const { id, relay } = agent.exec(sh('id -un; echo err > /dev/stderr; pwd'));
    expect(await agent.answer(id)).toMatchObject({ user: 'nobody', error: null });
    await relay.ended();
    expect(relay.text('out')).toBe('nobody\n/\n');
    expect(relay.text('err')).toBe('err\n');
  });

  it('that is not there, or cannot be executed, is refused before it starts', async () => {
    const agent = await AgentEnd.start();
    const { id } = agent.exec(['no-such-program', 'x']);
    expect((await agent.answer(id)).error).toEqual({
      code: 'command_missing',
      message: 'this agent has no program "no-such-program"',
    });
    const directory = agent.exec(['/etc']);
    expect((await agent.answer(directory.id)).error).toEqual({
      code: 'command_not_executable',
      message: 'the program cannot be executed: /etc is not a program',
    });
    expect(agent.terminals.list().sessions).toEqual([]);
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
