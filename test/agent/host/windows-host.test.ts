/**
 * The Host of Windows with its drives below a temporary directory and with scripts in place of its programs: what does not
 * depend on the system is proved here; access lists, sharing of open files and the real `taskkill` are not.
 */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { WindowsHost, type WindowsHostOptions } from '../../../src/agent/host/this-host.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { FileStep, PathFact } from '../../../src/resources/host.js';
import { windowsPath } from '../../../src/resources/windows/windows-path.js';
import { place, write } from '../../support/agent.js';

interface Machine {
  readonly host: WindowsHost;
  /** Where `C:\` is. */
  readonly root: string;
  readonly replaced: string[];
}

function machine(options: Partial<WindowsHostOptions> = {}): Machine {
  const root = place();
  const replaced: string[] = [];
  const host = new WindowsHost({
    toNative: (path) => join(root, ...path.slice(3).split('\\')),
    replace: async (temporary, target) => {
      replaced.push(target);
      renameSync(temporary, target);
    },
    ...options,
  });
  return { host, root, replaced };
}

function look({ host }: Machine, path: string): PathFact {
  const [fact] = host.observe([{ path, content: true, entries: true }]);
  if (!fact) throw new Error('no answer');
  return fact;
}

async function commit({ host }: Machine, ...steps: FileStep[]) {
  return await host.commit(steps);
}

const makeDirectory = (path: string): Extract<FileStep, { do: 'make-directory' }> => ({
  do: 'make-directory',
  path,
  owner: null,
  group: null,
  mode: 0o755,
});

describe('looking', () => {
  it('tells files, directories, links and what is not there', () => {
    const one = machine();
    writeFileSync(join(one.root, 'a.txt'), 'grüezi\r\n');
    writeFileSync(join(one.root, 'b.bin'), Buffer.from([0xff, 0xfe]));
    mkdirSync(join(one.root, 'dir'));
    symlinkSync('a.txt', join(one.root, 'link'));
    expect(look(one, 'C:\\a.txt')).toMatchObject({ type: 'file', content: { kind: 'text', text: 'grüezi\r\n' } });
    expect(look(one, 'C:\\b.bin')).toMatchObject({ type: 'file', content: { kind: 'binary' } });
    expect(look(one, 'C:\\dir')).toMatchObject({ type: 'directory', entries: [] });
    expect(look(one, 'C:\\link')).toEqual({ type: 'symlink', target: 'a.txt' });
    expect(look(one, 'C:\\none')).toEqual({ type: 'absent', parent: 'directory' });
    expect(look(one, 'C:\\none\\x\\y')).toEqual({
      type: 'absent',
      parent: 'absent',
      missing: ['C:\\none', 'C:\\none\\x'],
    });
    expect(look(one, 'C:\\a.txt\\x')).toEqual({ type: 'absent', parent: 'not-directory' });
  });

  it('refuses to go through a link, and a path that is none', () => {
    const one = machine();
    mkdirSync(join(one.root, 'real'));
    symlinkSync('real', join(one.root, 'junction'));
    expect(look(one, 'C:\\junction\\x')).toMatchObject({ type: 'unreadable', code: 'unsafe_path' });
    expect(look(one, 'C:\\..\\x')).toMatchObject({ type: 'unreadable', code: 'unsafe_path' });
    expect(look(one, 'C:\\nul')).toMatchObject({ type: 'unreadable', code: 'unsafe_path' });
  });
});

describe('changing', () => {
  it('makes directories and files, one after the other', async () => {
    const one = machine();
    const outcomes = await commit(one, makeDirectory('C:\\Apps'), write('C:\\Apps\\a.ini', 'ü\r\n'));
    expect(outcomes).toEqual([null, null]);
    expect(readFileSync(join(one.root, 'Apps', 'a.ini'), 'utf8')).toBe('ü\r\n');
    expect(readdirSync(join(one.root, 'Apps'))).toEqual(['a.ini']);
    expect(one.replaced).toEqual([]);
  });

  it('replaces a file in the way that keeps its access list, and leaves nothing beside it', async () => {
    const one = machine();
    writeFileSync(join(one.root, 'a.ini'), 'old');
    expect(await commit(one, write('C:\\a.ini', 'new'))).toEqual([null]);
    expect(one.replaced).toEqual([join(one.root, 'a.ini')]);
    expect(readFileSync(join(one.root, 'a.ini'), 'utf8')).toBe('new');
    expect(readdirSync(one.root)).toEqual(['a.ini']);
  });

  it('leaves the old file whole when it cannot be replaced', async () => {
    const refuse = async () => {
      throw new Fault('permission_denied', 'Windows denies it');
    };
    const one = machine({ replace: refuse });
    writeFileSync(join(one.root, 'a.ini'), 'old');
    expect(await commit(one, write('C:\\a.ini', 'new'))).toEqual([
      { code: 'permission_denied', message: 'Windows denies it' },
    ]);
    expect(readFileSync(join(one.root, 'a.ini'), 'utf8')).toBe('old');
    expect(readdirSync(one.root)).toEqual(['a.ini']);
  });

  it('tries again when something holds the file for a moment', async () => {
    let attempts = 0;
    const one = machine({
      replace: async (temporary, target) => {
        attempts += 1;
        if (attempts < 3) throw Object.assign(new Error('EPERM'), { code: 'EPERM' });
        renameSync(temporary, target);
      },
    });
    writeFileSync(join(one.root, 'a.ini'), 'old');
    expect(await commit(one, write('C:\\a.ini', 'new'))).toEqual([null]);
    expect(attempts).toBe(3);
  });

  it('replaces a link itself, and never a directory', async () => {
    const one = machine();
    writeFileSync(join(one.root, 'other'), 'other');
    symlinkSync('other', join(one.root, 'link'));
    mkdirSync(join(one.root, 'dir'));
    const [first, second] = await commit(one, write('C:\\link', 'new'), write('C:\\dir', 'new'));
    expect([first, second?.code]).toEqual([null, 'wrong_type']);
    expect(lstatSync(join(one.root, 'link')).isFile()).toBe(true);
    expect(readFileSync(join(one.root, 'other'), 'utf8')).toBe('other');
    expect(readdirSync(one.root).sort()).toEqual(['dir', 'link', 'other']);
  });

  it('removes files and empty directories, and is content when they are gone', async () => {
    const one = machine();
    mkdirSync(join(one.root, 'full'));
    mkdirSync(join(one.root, 'empty'));
    writeFileSync(join(one.root, 'full', 'a'), '');
    const outcomes = await commit(
      one,
      { do: 'remove-directory', path: 'C:\\full' },
      { do: 'remove-directory', path: 'C:\\empty' },
      { do: 'remove-file', path: 'C:\\full\\a' },
      { do: 'remove-file', path: 'C:\\gone' },
      { do: 'remove-directory', path: 'C:\\gone' },
      { do: 'remove-file', path: 'C:\\full' },
    );
    expect(outcomes.map((outcome) => outcome?.code ?? null)).toEqual([
      'apply_failed',
      null,
      null,
      null,
      null,
      'wrong_type',
    ]);
  });

  it('makes missing directories on the way when asked to', async () => {
    const one = machine();
    const outcomes = await commit(one, write('C:\\Apps\\Web\\a.ini', 'x', { parents: true }), {
      ...makeDirectory('C:\\Apps\\Data\\d'),
      parents: true,
    });
    expect(outcomes).toEqual([null, null]);
    expect(readFileSync(join(one.root, 'Apps', 'Web', 'a.ini'), 'utf8')).toBe('x');
    expect(existsSync(join(one.root, 'Apps', 'Data', 'd'))).toBe(true);
  });

  it('refuses owners and modes, missing directories and ways through links', async () => {
    const one = machine();
    symlinkSync('/', join(one.root, 'junction'));
    const outcomes = await commit(
      one,
      { do: 'set-metadata', path: 'C:\\a', expect: 'file', owner: null, group: null, mode: 0o644 },
      write('C:\\none\\a', ''),
      write('C:\\junction\\a', ''),
      write('C:\\a:stream', ''),
    );
    expect(outcomes.map((outcome) => outcome?.code)).toEqual([
      'unsupported_on_platform',
      'parent_missing',
      'unsafe_path',
      'unsafe_path',
    ]);
  });

  it('sweeps what a run that died has left', () => {
    const one = machine();
    const left = join(one.root, '.a.ini.orch-3fffff0123456789.dpkg-tmp');
    writeFileSync(left, 'half');
    one.host.removeTemporaries([windowsPath('c:/a.ini')]);
    expect(existsSync(left)).toBe(false);
  });
});

/** A Windows whose programs are shell scripts. */
function withPrograms(programs: Readonly<Record<string, string>>, options: Partial<WindowsHostOptions> = {}) {
  const systemRoot = place();
  const system = join(systemRoot, 'System32');
  mkdirSync(system);
  for (const [name, text] of Object.entries(programs)) {
    writeFileSync(join(system, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(system, name), 0o755);
  }
  const dataDir = place();
  return { host: new WindowsHost({ systemRoot, dataDir, ...options }), system, dataDir };
}

/** As `taskkill /T`: the process and its children. The scripts run in the group of this process, which has to stay. */
const TASKKILL = '[ "$3 $4" = "/T /F" ] || exit 9\nPATH=/usr/bin:/bin\npkill -KILL -P "$2"\nkill -KILL "$2"';

/** A process that was ended may wait to be buried. */
function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/stat`;
  return existsSync(path) && !/\) Z /.test(readFileSync(path, 'utf8'));
}

describe('running', () => {
  const hostile = ['a b', '"', "'", '\\', '%PATH%', '$(x)', '‘’', '', '&|<>^'];

  it('hands every argument over as it is, the input, a clean environment and the script', async () => {
    const program = [
      'for one in "$@"; do printf "%s\\n" "[$one]"; done',
      'for last in "$@"; do :; done',
      '/bin/cat "$last" -',
      'echo "$PWD $SystemRoot $SECRET_OF_THE_AGENT $MORE"',
    ].join('\n');
    const { host, system, dataDir } = withPrograms({ 'tool.exe': program });
    process.env.SECRET_OF_THE_AGENT = 'hidden';
    onTestFinished(() => {
      delete process.env.SECRET_OF_THE_AGENT;
    });
    const result = await host.run({
      argv: ['tool', ...hostile],
      input: 'input\n',
      script: { text: 'script\n', suffix: '.ps1' },
      env: { MORE: 'more' },
    });
    expect(result.end).toEqual({ how: 'exited', code: 0 });
    const lines = result.stdout.split('\n');
    expect(lines.slice(0, hostile.length)).toEqual(hostile.map((one) => `[${one}]`));
    expect(lines[hostile.length]).toMatch(/script\.ps1\]$/);
    expect(lines.slice(hostile.length + 1, -1)).toEqual(['script', 'input', `${system} ${join(system, '..')}  more`]);
    expect(readdirSync(join(dataDir, 'scripts'))).toEqual([]);
  });

  it('tells the exit status, both streams and a program that is not there', async () => {
    const { host } = withPrograms({ 'fails.exe': 'echo out; echo err >&2; exit 3' });
    expect(await host.run({ argv: ['fails.exe'] })).toEqual({
      end: { how: 'exited', code: 3 },
      stdout: 'out\n',
      stderr: 'err\n',
      truncated: false,
    });
    expect((await host.run({ argv: ['none'] })).end).toMatchObject({ how: 'not-started', missing: true });
    expect((await host.run({ argv: ['fails.cmd'] })).end).toMatchObject({ how: 'not-started', missing: true });
  });

  it('captures the same through files for what outlives the agent', async () => {
    const { host } = withPrograms({ 'tool.exe': '/bin/cat; echo out; echo err >&2; exit 4' });
    expect(await host.run({ argv: ['tool'], input: 'in\n', lifetime: 'outlive' })).toEqual({
      end: { how: 'exited', code: 4 },
      stdout: 'in\nout\n',
      stderr: 'err\n',
      truncated: false,
    });
  });

  it('ends a program and what it has started when its time is over', async () => {
    const { host } = withPrograms({ 'taskkill.exe': TASKKILL, 'slow.exe': '/bin/sleep 60 & echo $!; wait' });
    const result = await host.run({ argv: ['slow'], timeoutSecs: 1 });
    expect(result.end).toEqual({ how: 'timed-out', seconds: 1 });
    expect(isRunning(Number(result.stdout))).toBe(false);
  });

  it('ends on a cancel what may be ended, lets the rest finish, and starts nothing after it', async () => {
    const programs = { 'taskkill.exe': TASKKILL, 'slow.exe': '/bin/sleep 1; echo done' };
    const controller = new AbortController();
    const { host } = withPrograms(programs, { signal: controller.signal });
    const [ended, finished] = [host.run({ argv: ['slow'], lifetime: 'end' }), host.run({ argv: ['slow'] })];
    controller.abort(new Fault('cancelled', 'cancelled'));
    expect((await ended).end).toEqual({ how: 'cancelled' });
    expect(await finished).toMatchObject({ end: { how: 'exited', code: 0 }, stdout: 'done\n' });
    expect((await host.run({ argv: ['slow'], lifetime: 'end' })).end).toEqual({ how: 'cancelled' });
  });

  it('lets a program finish when the agent stops', async () => {
    const controller = new AbortController();
    const { host } = withPrograms({ 'slow.exe': '/bin/sleep 1; echo done' }, { signal: controller.signal });
    const running = host.run({ argv: ['slow'], lifetime: 'end' });
    controller.abort(new Fault('interrupted', 'the agent stops'));
    expect(await running).toMatchObject({ end: { how: 'exited', code: 0 } });
  });

  it('replaces a file through PowerShell, which gets both paths as data', async () => {
    const answer = `/bin/cat > "$PWD/input"\nprintf '{"done":true}'`;
    const root = place();
    const { system, host } = withPrograms(
      { 'powershell.exe': answer },
      { toNative: (path) => join(root, ...path.slice(3).split('\\')) },
    );
    writeFileSync(join(root, "it's “a”.ini"), 'old');
    expect(await host.commit([write("C:\\it's “a”.ini", 'new')])).toEqual([null]);
    const { from, to } = JSON.parse(readFileSync(join(system, 'input'), 'utf8')) as { from: string; to: string };
    expect(to).toBe(join(root, "it's “a”.ini"));
    expect(from.startsWith(`${root}/.it's “a”.ini.orch-`)).toBe(true);
  });
});
