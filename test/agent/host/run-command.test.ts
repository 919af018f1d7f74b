/** Commands on this machine, with real processes. */
import { spawn, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { UnixHost, type UnixHostOptions } from '../../../src/agent/host/this-host.js';
import { Fault } from '../../../src/kernel/fault.js';
import { type Command, type CommandResult, MAX_OUTPUT_BYTES } from '../../../src/resources/command.js';
import { needs, place } from '../../support/agent.js';
import { until } from '../../support/orch.js';

const run = (command: Command, options: Partial<UnixHostOptions> = {}): Promise<CommandResult> =>
  new UnixHost({ platform: 'linux', ...options }).run(command);

const sh = (line: string, more: Partial<Command> = {}): Command => ({ argv: ['sh', '-c', line], ...more });
const script = (text: string, more: Partial<Command> = {}): Command => ({
  argv: ['sh'],
  script: { text, suffix: '.sh' },
  ...more,
});

const exited = (code: number) => ({ how: 'exited', code });

const isAlive = (pid: number): boolean => {
  try {
    // A process that has ended without being reaped is none.
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

/** Ends a process that a test leaves behind on purpose. */
function endLater(pid: number, context: TestContext): void {
  context.onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
}

/** For the rest of the test. */
function setEnvironment(variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(variables)) {
    const before = process.env[name];
    process.env[name] = value;
    onTestFinished(() => {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    });
  }
}

const pidIn = (text: string): number => {
  const pid = Number(text.trim());
  if (!Number.isInteger(pid) || pid < 2) throw new Error(`no process id: ${text}`);
  return pid;
};

describe('what a program does', () => {
  it('comes back with its status and both streams apart', async () => {
    expect(await run(sh('echo out; echo err >&2; exit 3'))).toEqual({
      end: exited(3),
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
    });
  });

  it('is distinguished from a signal that was sent', async () => {
    expect(await run(sh('echo before; kill -USR1 $$'))).toMatchObject({
      end: { how: 'killed', signal: 'SIGUSR1' },
      stdout: 'before\n',
    });
  });

  it('takes its arguments as they are', async () => {
    const args = ['$HOME', '*', 'a b', "'", '"', '\n', '', '--', '-x', 'ü'];
    const { stdout } = await run({ argv: ['printf', '%s\\0', ...args] });
    expect(stdout.split('\0').slice(0, -1)).toEqual(args);
  });

  it('gets its input, and may leave it unread', async () => {
    const input = 'x'.repeat(1_000_000);
    expect(await run({ argv: ['wc', '-c'], input })).toMatchObject({ stdout: '1000000\n' });
    expect(await run({ argv: ['true'], input })).toMatchObject({ end: exited(0) });
    expect(await run(sh('exec <&-; sleep 0.2; echo done', { input }))).toMatchObject({
      end: exited(0),
      stdout: 'done\n',
    });
  });

  it('has an empty input without one, and no terminal', async () => {
    expect(await run(sh('cat; readlink /proc/self/fd/0; tty || true; pwd'))).toMatchObject({
      stdout: '/dev/null\nnot a tty\n/\n',
    });
  });

  it('may open its streams by their names', async () => {
    expect(await run(sh('echo one >/dev/stdout; echo two >/dev/stderr; echo three'))).toMatchObject({
      end: exited(0),
      stdout: 'one\nthree\n',
      stderr: 'two\n',
    });
  });
});

describe('what cannot be started', () => {
  const missing = { how: 'not-started', missing: true };

  it('is a program that is not there', async () => {
    expect((await run({ argv: ['orch-no-such-program'] })).end).toMatchObject(missing);
    expect((await run({ argv: ['/nowhere/program'] })).end).toMatchObject(missing);
    expect((await run({ argv: ['/etc/passwd/program'] })).end).toMatchObject(missing);
  });

  it('is a file that is no program', async () => {
    const file = join(place(), 'file');
    writeFileSync(file, 'text', { mode: 0o644 });
    for (const argv of [[file], ['/etc']] as const) {
      const { end } = await run({ argv });
      expect(end).toMatchObject({ how: 'not-started', missing: false, message: expect.stringContaining(argv[0]) });
    }
  });

  it('is what the system does not take as arguments', async () => {
    expect((await run({ argv: ['true', 'a\0b'] })).end).toMatchObject({ how: 'not-started', missing: false });
    expect((await run({ argv: ['true', 'x'.repeat(3_000_000)] })).end).toMatchObject({
      how: 'not-started',
      missing: false,
      message: expect.stringContaining('E2BIG'),
    });
  });

  it('leaves nothing open', async () => {
    const open = () => readdirSync('/proc/self/fd').length;
    await run({ argv: ['true'] });
    const before = open();
    for (let turn = 0; turn < 5; turn += 1) {
      await run({ argv: ['true', 'a\0b'] });
      await run({ argv: ['true', 'a\0b'], lifetime: 'outlive' });
      await run({ argv: ['true'], input: 'x' });
      await run({ argv: ['true'], lifetime: 'outlive', input: 'x' });
    }
    await until(async () => open() <= before, 'all is closed');
  });
});

describe('the environment', () => {
  it('is a clean one, whatever that of the agent is', async () => {
    setEnvironment({ ORCH_TEST_SECRET: 'x', NODE_OPTIONS: '--no-warnings', HOME: '/wrong', PATH: '/wrong' });
    const { stdout } = await run({ argv: ['env'], env: { DEBIAN_FRONTEND: 'noninteractive' } });
    const { homedir, username } = userInfo();
    const variables = Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/=(.*)/s).slice(0, 2)),
    );
    // Variables that the shell sets by itself.
    for (const name of ['PWD', 'SHLVL', '_', 'OLDPWD']) delete variables[name];
    expect(variables).toEqual({
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      LANG: 'C.UTF-8',
      HOME: homedir,
      USER: username,
      LOGNAME: username,
      DEBIAN_FRONTEND: 'noninteractive',
    });
  });

  it('has the usual umask, and no descriptor but the three streams', async () => {
    const before = process.umask(0o077);
    onTestFinished(() => {
      process.umask(before);
    });
    const file = openSync('/dev/null', 'r');
    onTestFinished(() => closeSync(file));
    // Variables that this process got from the one that started it are not its own.
    const inherited = spawnSync('ls', ['/proc/self/fd'], { encoding: 'utf8' }).stdout;
    for (const more of [{}, { input: 'x' }, { lifetime: 'outlive' }] as const) {
      expect((await run(sh('umask; exec ls /proc/self/fd', more))).stdout).toBe(`0022\n${inherited}`);
    }
  });

  it('has a session and a process group of its own', async () => {
    const { stdout } = await run(sh('ps -o pid=,pgid=,sid= -p $$'));
    const [pid, group, session] = stdout.trim().split(/\s+/);
    expect(group).toBe(pid);
    expect(session).toBe(pid);
  });
});

describe('a script', () => {
  it('is a file for its user alone, and gone afterwards', async () => {
    const dataDir = place();
    const text = 'stat -c "%a %u" "$0" "$(dirname "$0")"; echo "$0"; cat "$0"';
    const { stdout } = await run(script(text), { dataDir });
    const [file, directory, path = '', ...rest] = stdout.split('\n');
    const uid = process.geteuid?.();
    expect([file, directory]).toEqual([`600 ${uid}`, `700 ${uid}`]);
    expect(path).toMatch(/\.sh$/);
    expect(path.startsWith(join(dataDir, 'scripts'))).toBe(true);
    expect(rest.join('\n')).toBe(text);
    expect(readdirSync(join(dataDir, 'scripts'))).toEqual([]);
  });

  it('comes after the other arguments', async () => {
    const { stdout } = await run({ argv: ['printf', '%s\\n', 'a'], script: { text: '', suffix: '.ps1' } });
    expect(stdout).toMatch(/^a\n.*\.ps1\n$/);
  });

  it('lies in the temporary directory where the agent has none of its own', async () => {
    const dataDir = join(place(), 'missing');
    for (const options of [{}, { dataDir }]) {
      const { stdout } = await run(script('echo "$0"'), options);
      expect(stdout.startsWith(tmpdir())).toBe(true);
      expect(existsSync(join(stdout.trim(), '..'))).toBe(false);
    }
    expect(existsSync(dataDir)).toBe(false);
  });

  it('is gone too when it timed out, was cancelled, killed or never started', async () => {
    const dataDir = place();
    const signal = AbortSignal.timeout(200);
    await run(script('sleep 60', { timeoutSecs: 0.2 }), { dataDir });
    await run(script('sleep 60', { lifetime: 'end' }), { dataDir, signal });
    await run(script('kill -9 $$'), { dataDir });
    await run({ argv: ['sh', 'a\0b'], script: { text: 'x', suffix: '' } }, { dataDir });
    await run(script('touch "$(dirname "$0")/more"; mkdir "$(dirname "$0")/deep"'), { dataDir });
    expect(readdirSync(join(dataDir, 'scripts'))).toEqual([]);
  });

  it('of an agent that died is removed when the next one starts', () => {
    const dataDir = place();
    const scripts = join(dataDir, 'scripts');
    mkdirSync(scripts);
    const leave = (pid: number | undefined) => {
      const directory = mkdtempSync(join(scripts, `orch-${pid}-`));
      writeFileSync(join(directory, 'script.sh'), 'half a secret');
      return directory;
    };
    const [dead, living] = [leave(spawnSync('true').pid), leave(process.ppid)];
    writeFileSync(join(scripts, 'notes'), '');
    new UnixHost({ platform: 'linux', dataDir });
    expect(existsSync(dead)).toBe(false);
    expect(readdirSync(scripts).sort()).toEqual(['notes', living.slice(scripts.length + 1)]);
  });

  it('of an agent in another PID namespace stays in the temporary directory, and goes from its own', async (context) => {
    needs(context, process.platform === 'linux', 'Linux');
    const dead = spawnSync('true').pid;
    const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0];
    const leave = (directory: string, from: string | undefined) =>
      mkdtempSync(join(directory, `orch-${dead}-${from}-`));
    const [foreign, ours] = [leave(tmpdir(), '1'), leave(tmpdir(), namespace)];
    onTestFinished(() => rmSync(foreign, { recursive: true }));
    await run(script('true'), {});
    expect([foreign, ours].map((path) => existsSync(path))).toEqual([true, false]);
    const dataDir = place();
    const scripts = join(dataDir, 'scripts');
    mkdirSync(scripts);
    for (const from of ['1', namespace]) leave(scripts, from);
    new UnixHost({ platform: 'linux', dataDir });
    expect(readdirSync(scripts)).toEqual([]);
  });

  it('may hold what no argument could', async () => {
    const text = `cat <<'END' | wc -c\n${'x'.repeat(3_000_000)}\nEND\n`;
    expect(await run(script(text))).toMatchObject({ stdout: '3000001\n' });
  });
});

describe('output', () => {
  it.each(['finish', 'outlive'] as const)('of %s is kept whole up to the limit', async (lifetime) => {
    const result = await run(sh(`head -c ${MAX_OUTPUT_BYTES} /dev/zero | tr '\\0' x`, { lifetime }));
    expect(result.truncated).toBe(false);
    expect(result.stdout).toBe('x'.repeat(MAX_OUTPUT_BYTES));
  });

  it.each(['finish', 'outlive'] as const)(
    'of %s keeps head and tail beyond it, however much it is',
    async (lifetime) => {
      const bytes = 100_000_000;
      const line = `echo first; head -c ${bytes} /dev/zero | tr '\\0' x; echo; echo last; echo beside >&2`;
      const { end, stdout, stderr, truncated } = await run(sh(line, { lifetime }));
      expect(end).toEqual(exited(0));
      expect(truncated).toBe(true);
      expect(stdout.startsWith('first\nxxx')).toBe(true);
      expect(stdout.endsWith('xxx\nlast\n')).toBe(true);
      expect(stderr).toBe('beside\n');
      const dropped = Number(/\n… (\d+) bytes are left out …\n/.exec(stdout)?.[1]);
      expect(dropped).toBe(bytes + 'first\n\nlast\n'.length - MAX_OUTPUT_BYTES);
    },
  );

  it('is never cut inside a character', async () => {
    for (const prefix of ['', 'a', 'ab', 'abc']) {
      const { stdout, truncated } = await run(sh(`printf ${prefix || "''"}; yes '😀é€' | head -c 600000`));
      expect(truncated).toBe(true);
      expect(stdout.slice(0, -4)).not.toContain('\ufffd');
    }
    const { stdout } = await run(sh("printf '\\360\\237'; sleep 0.1; printf '\\230\\200'; printf '\\377'"));
    expect(stdout).toBe('😀\ufffd');
  });

  it('comes at once when a process that was left behind keeps the streams open', async (context) => {
    const { end, stdout } = await run(sh('sleep 600 & echo $!'));
    const pid = pidIn(stdout);
    endLater(pid, context);
    expect(end).toEqual(exited(0));
    expect(isAlive(pid)).toBe(true);
  });

  it('of a child that ends a little later is there', async () => {
    expect(await run(sh('(sleep 0.3; echo late) & echo early'))).toMatchObject({ stdout: 'early\nlate\n' });
  });
});

describe.concurrent('a time-out', () => {
  it('ends the whole group, and what was written before is kept', async () => {
    const { end, stdout } = await run(sh('sleep 600 & echo $!; sleep 600', { timeoutSecs: 0.3 }));
    expect(end).toEqual({ how: 'timed-out', seconds: 0.3 });
    expect(isAlive(pidIn(stdout))).toBe(false);
  });

  it('lets a program end in order', async () => {
    const text = 'trap "echo tidied; exit 0" TERM; echo ready; while :; do sleep 0.05; done';
    const { end, stdout } = await run(script(text, { timeoutSecs: 'script' }), { scriptTimeoutSecs: 0.3 });
    expect(end).toEqual({ how: 'timed-out', seconds: 0.3 });
    expect(stdout).toBe('ready\ntidied\n');
  });

  it('reaches a stopped process', async () => {
    const { end } = await run(sh('kill -STOP $$', { timeoutSecs: 0.2 }));
    expect(end).toMatchObject({ how: 'timed-out' });
  });

  it('says that a process which the script left behind has its output open', async (context) => {
    const { stdout, stderr, end } = await run(script('sleep 600 &\necho $!'));
    endLater(pidIn(stdout), context);
    expect(end).toEqual({ how: 'exited', code: 0 });
    expect(stderr).toMatch(/^orch: a process that the script left behind has its output open/);
  });

  it('kills what does not hear it, but not what has left for a session of its own', async (context) => {
    const text = [
      'trap "" TERM',
      'setsid sleep 600 &',
      'echo $!',
      '(while :; do sleep 0.1; done) &',
      'echo $!',
      'while :; do sleep 0.1; done',
    ].join('\n');
    const { end, stdout } = await run(script(text, { timeoutSecs: 0.3 }));
    const [daemon = 0, child = 0] = stdout.trim().split('\n').map(pidIn);
    endLater(daemon, context);
    expect(end).toMatchObject({ how: 'timed-out' });
    expect(isAlive(child)).toBe(false);
    expect(isAlive(daemon)).toBe(true);
  });
});

describe.concurrent('a cancelled run', () => {
  const cancelledBy = (code: 'cancelled' | 'interrupted') => {
    const stopper = new AbortController();
    setTimeout(() => stopper.abort(new Fault(code, 'stop')), 200);
    return stopper.signal;
  };

  it('ends a command that is meant to end with it, and its group', async (context) => {
    const started = join(tmpdir(), `orch-started-${process.pid}`);
    context.onTestFinished(() => rmSync(started, { force: true }));
    const stopper = new AbortController();
    const command = sh(`sleep 600 & echo $! >${started}; sleep 600`, { lifetime: 'end' });
    const running = run(command, { signal: stopper.signal });
    await until(() => existsSync(started) && readFileSync(started, 'utf8').endsWith('\n'), 'the command has begun');
    stopper.abort(new Fault('cancelled', 'stop'));
    expect((await running).end).toEqual({ how: 'cancelled' });
    expect(isAlive(pidIn(readFileSync(started, 'utf8')))).toBe(false);
  });

  it('begins none of these', async () => {
    const file = join(tmpdir(), `orch-never-${process.pid}`);
    const signal = AbortSignal.abort(new Fault('cancelled', 'stop'));
    expect((await run({ argv: ['touch', file], lifetime: 'end' }, { signal })).end).toEqual({ how: 'cancelled' });
    expect(existsSync(file)).toBe(false);
    expect((await run({ argv: ['touch', file] }, { signal })).end).toEqual(exited(0));
  });

  it.each([undefined, 'finish', 'outlive'] as const)('lets others finish (%s)', async (lifetime) => {
    const command = sh('sleep 0.5; echo done', lifetime ? { lifetime } : {});
    expect(await run(command, { signal: cancelledBy('cancelled') })).toMatchObject({
      end: exited(0),
      stdout: 'done\n',
    });
  });

  it('ends a command that is just being started, whichever moment that is', async () => {
    const ends = Array.from({ length: 20 }, async (_, turns) => {
      const stopper = new AbortController();
      const command = sh('sleep 600', { lifetime: 'end', timeoutSecs: 20 });
      const result = run(command, { signal: stopper.signal });
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      stopper.abort(new Fault('cancelled', 'stop'));
      return (await result).end;
    });
    expect(new Set((await Promise.all(ends)).map(({ how }) => how))).toEqual(new Set(['cancelled']));
  });

  it('is not the same as an agent that stops', async () => {
    const command = sh('sleep 0.5; echo done', { lifetime: 'end' });
    expect(await run(command, { signal: cancelledBy('interrupted') })).toMatchObject({ end: exited(0) });
  });
});

describe('a command that outlives the agent', () => {
  const module = fileURLToPath(new URL('../../../dist/src/agent/host/this-host.js', import.meta.url));

  it('goes on writing and reading when the agent is killed', async () => {
    const directory = place();
    const done = join(directory, 'done');
    const line = `echo begun; touch ${directory}/begun; sleep 1; seq 100000 && echo "read $(wc -c), wrote: $?" >${done}`;
    const command = { argv: ['sh', '-c', line], input: 'x'.repeat(500_000), lifetime: 'outlive' };
    const program = join(directory, 'agent.mjs');
    writeFileSync(
      program,
      `import { UnixHost } from ${JSON.stringify(module)};
      await new UnixHost({ platform: 'linux', dataDir: ${JSON.stringify(directory)} }).run(${JSON.stringify(command)});`,
    );
    const agent = spawn(process.execPath, [program], { stdio: 'inherit' });
    await until(async () => existsSync(join(directory, 'begun')), 'the command has begun');
    agent.kill('SIGKILL');
    await until(async () => existsSync(done) && readFileSync(done, 'utf8') !== '', 'the command has ended');
    expect(readFileSync(done, 'utf8')).toBe('read 500000, wrote: 0\n');
    expect(readdirSync(join(directory, 'scripts'))).toHaveLength(1);
    new UnixHost({ platform: 'linux', dataDir: directory });
    expect(readdirSync(join(directory, 'scripts'))).toEqual([]);
  });

  it('may open its streams by their names', async () => {
    const result = await run(sh('echo one; echo two >/dev/stderr; echo three', { lifetime: 'outlive' }));
    expect(result).toMatchObject({ end: exited(0), stdout: 'one\nthree\n', stderr: 'two\n' });
  });

  it('loses nothing of what it writes while its output is read and freed', async () => {
    const bytes = 96 * 2 ** 20;
    const text = `
      const { writeSync } = require('node:fs');
      const line = Buffer.from('x'.repeat(4095) + '\\n');
      for (let at = 0; at < ${bytes}; at += line.length) {
        writeSync(1, line);
        for (const began = performance.now(); performance.now() - began < 0.1; );
      }`;
    const { end, stdout } = await run({ argv: [process.execPath, '-e', text], lifetime: 'outlive' });
    expect(end).toEqual(exited(0));
    const dropped = Number(/\n… (\d+) bytes are left out …\n/.exec(stdout)?.[1]);
    expect(dropped).toBe(bytes - MAX_OUTPUT_BYTES);
  });

  it('fills no disk with what was read', async (context) => {
    needs(context, spawnSync('fallocate', ['--version']).status === 0, 'fallocate');
    const line = `head -c ${64 * 2 ** 20} /dev/zero
      while test $(stat -L -c %b /proc/self/fd/3) -gt 2048; do sleep 0.1; done; echo done >&2`;
    const command = sh(`{ ${line}; } 3>&1`, { lifetime: 'outlive' });
    expect(await run(command)).toMatchObject({ end: exited(0), stderr: 'done\n', truncated: true });
  });

  it('is ended by its own time-out', async () => {
    const command = sh('echo $$; sleep 600', { lifetime: 'outlive', timeoutSecs: 0.3 });
    const { end, stdout } = await run(command);
    expect(end).toMatchObject({ how: 'timed-out' });
    expect(isAlive(pidIn(stdout))).toBe(false);
  });
});

describe('where neither the data directory nor the temporary one can be written', () => {
  it('works in memory', async (context) => {
    needs(context, process.platform === 'linux', 'Linux');
    setEnvironment({ TMPDIR: join(place(), 'missing') });
    const { end, stdout } = await run({ argv: ['sh'], script: { text: 'echo done', suffix: '.sh' } });
    expect({ end, stdout }).toEqual({ end: { how: 'exited', code: 0 }, stdout: 'done\n' });
  });
});
