/** Files of root in directories of other users, who choose what is inherited there, race for it, and look at what a kill leaves. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import { PathRestorer } from '../../../src/agent/snapshot/path-restorer.js';
import { PathSaver } from '../../../src/agent/snapshot/path-saver.js';
import type { SavedPath } from '../../../src/agent/snapshot/saved-path.js';
import { makeSnapshotDirectory } from '../../../src/agent/snapshot/snapshot-record.js';
import type { FileStep } from '../../../src/resources/host.js';
import { commitOne, host, isRoot, look, needs, place, run, succeeds, write } from '../../support/agent.js';
import { isInstalled } from '../../support/is-installed.js';

const EVE = 1234;
const DIST = new URL('../../../dist/src/agent/', import.meta.url).href;

const make = (path: string, mode: number | null, more: Partial<Extract<FileStep, { do: 'make-directory' }>> = {}) =>
  ({ do: 'make-directory', path, owner: null, group: null, mode, ...more }) as const;

/** A directory of a user that lets everybody through to it. */
function homeOf(user: number): string {
  const root = place();
  chmodSync(root, 0o755);
  const home = join(root, 'home');
  mkdirSync(home);
  chownSync(home, user, user);
  return home;
}

/** Gives a directory a list for what is made in it. */
function giveList(context: TestContext, directory: string, ...more: readonly string[]): void {
  const set = (...words: readonly string[]) => succeeds('setfacl', ...words, ...more, directory);
  needs(context, set('-d', '-m', `u:${EVE}:rwx,g:${EVE}:rwx`), 'setfacl and a file system with access lists');
}

/** Arguments of `setpriv` that run a program of the system as the user. */
const eveRuns = (...words: readonly string[]): readonly string[] => [
  ...[`--reuid=${EVE}`, `--regid=${EVE}`, '--clear-groups', '--'],
  ...['env', '-i', 'PATH=/usr/bin:/bin', ...words],
];

const asEve = (...words: readonly string[]) => run('setpriv', ...eveRuns(...words));

const listOf = (path: string): readonly string[] =>
  run('getfacl', '-cn', '--absolute-names', path)
    .stdout.split('\n')
    .filter((line) => line !== '');

const base = (mode: number): readonly string[] =>
  ['user', 'group', 'other'].map((name, at) => {
    const bits = (mode >> (6 - 3 * at)) & 7;
    return `${name}::${['r', 'w', 'x'].map((letter, place) => (bits & (4 >> place) ? letter : '-')).join('')}`;
  });

describe('a directory with an access list for what is made in it', () => {
  it.for(['a user', 'root'])('of %s gives it to nothing that root makes', async (owner, context) => {
    needs(context, isRoot, 'root');
    const home = homeOf(owner === 'root' ? 0 : EVE);
    giveList(context, home);
    const at = (name: string) => join(home, name);
    const outcomes = await host().commit([
      write(at('secret'), 'secret', { mode: 0o640, isSecret: true }),
      write(at('open'), 'x', { mode: 0o664 }),
      make(at('closed'), 0o750),
      make(at('shared'), 0o770),
    ]);
    expect(outcomes).toEqual([null, null, null, null]);
    const modes = { secret: 0o640, open: 0o664, closed: 0o750, shared: 0o770 };
    for (const [name, mode] of Object.entries(modes)) {
      expect({ name, list: listOf(at(name)) }).toEqual({ name, list: base(mode) });
      expect(statSync(at(name))).toMatchObject({ uid: 0, gid: 0 });
    }
    expect(asEve('cat', at('secret')).stderr).toContain('Permission denied');
    expect(asEve('sh', '-c', `echo y >${at('open')}`).stderr).toContain('Permission denied');
    for (const name of ['closed', 'shared']) expect(asEve('ls', at(name)).stderr).toContain('Permission denied');
    expect(readdirSync(home).sort()).toEqual(Object.keys(modes).sort());
  });

  it('gives it to nothing that is restored', async (context) => {
    needs(context, isRoot, 'root');
    const home = homeOf(EVE);
    const [file, directory] = [join(home, 'file'), join(home, 'directory')];
    writeFileSync(file, 'secret', { mode: 0o600 });
    chmodSync(file, 0o640);
    mkdirSync(directory);
    chmodSync(directory, 0o770);
    giveList(context, home);
    const dataDir = place();
    makeSnapshotDirectory(dataDir);
    const saved = await new PathSaver({ dataDir }).save([file, directory]);
    rmSync(file);
    rmSync(directory, { recursive: true });
    for (const one of saved) expect(await new PathRestorer({ dataDir }).restore(one as SavedPath)).toBeNull();
    expect([listOf(file), listOf(directory)]).toEqual([base(0o640), base(0o770)]);
    expect(asEve('cat', file).stderr).toContain('Permission denied');
  });

  it('has what it gave taken away, and a list that its owner brings is not passed on', async (context) => {
    needs(context, isRoot, 'root');
    const home = homeOf(EVE);
    giveList(context, home);
    const [file, bare, directory] = [join(home, 'file'), join(home, 'bare'), join(home, 'directory')];
    // As an earlier release made them.
    for (const path of [file, bare]) {
      writeFileSync(path, 'old');
      chmodSync(path, 0o640);
    }
    mkdirSync(directory);
    writeFileSync(join(directory, 'inside'), 'stays');
    chmodSync(directory, 0o2750);
    for (const path of [file, bare, directory]) expect(look(path)).toMatchObject({ hasForeignList: true });
    expect(asEve('cat', file).stdout).toBe('old');
    const set = (path: string, expected: 'file' | 'directory') =>
      commitOne({ do: 'set-metadata', path, expect: expected, owner: null, group: null, mode: null });
    expect(await commitOne(write(file, 'new'))).toBeNull();
    expect(await set(bare, 'file')).toBeNull();
    expect(await set(directory, 'directory')).toBeNull();
    expect([file, bare, directory].map(listOf)).toEqual([base(0o640), base(0o640), base(0o750)]);
    expect(statSync(directory).mode & 0o7777).toBe(0o2750);
    expect(readFileSync(bare, 'utf8')).toBe('old');
    expect(readFileSync(join(directory, 'inside'), 'utf8')).toBe('stays');
    for (const path of [file, bare, directory]) expect(look(path)).not.toHaveProperty('hasForeignList');
  });

  it('gives nothing where the programs for access lists are missing either', async (context) => {
    needs(context, isRoot, 'root');
    const home = homeOf(EVE);
    const at = (name: string) => join(home, name);
    const dataDir = place();
    makeSnapshotDirectory(dataDir);
    writeFileSync(at('file'), 'secret', { mode: 0o640 });
    mkdirSync(at('directory'), { mode: 0o750 });
    symlinkSync('file', at('link'));
    for (const name of ['file', 'directory', 'link']) lchownSync(at(name), 7, 8);
    const saved = await new PathSaver({ dataDir }).save(['file', 'directory', 'link'].map(at));
    for (const name of ['file', 'directory', 'link']) rmSync(at(name), { recursive: true });
    giveList(context, home);
    const program = `
      const { UnixHost } = await import('${DIST}host/this-host.js');
      const { PathRestorer } = await import('${DIST}snapshot/path-restorer.js');
      const steps = ${JSON.stringify([write(at('f'), 'x', { mode: 0o640 }), make(at('d'), 0o750)])};
      const outcomes = await new UnixHost({ platform: 'linux' }).commit(steps);
      for (const saved of ${JSON.stringify(saved)}) {
        outcomes.push(await new PathRestorer({ dataDir: '${dataDir}' }).restore(saved));
      }
      console.log(JSON.stringify(outcomes));`;
    // Programs of the system that cannot be started.
    const none = join(place(), 'none');
    writeFileSync(none, '');
    const hide = 'for p in ls cp; do mount --bind "$0" "$(command -v $p)" || exit 9; done; exec "$@"';
    const node = [process.execPath, '--input-type=module', '-e', program];
    const { stdout, stderr } = run('unshare', '--mount', '--', 'sh', '-c', hide, none, ...node);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([null, null, null, null, null]);
    for (const name of ['f', 'file']) expect([name, listOf(at(name))]).toEqual([name, base(0o640)]);
    for (const name of ['d', 'directory']) expect([name, listOf(at(name))]).toEqual([name, base(0o750)]);
    for (const name of ['file', 'directory', 'link']) expect(lstatSync(at(name))).toMatchObject({ uid: 7, gid: 8 });
    expect(readFileSync(at('file'), 'utf8')).toBe('secret');
  });
});

describe('a setgid directory', () => {
  it('of root gives its group and its bit to new directories, and one of a user gives neither', async (context) => {
    needs(context, isRoot, 'root');
    for (const [owner, mode, gid] of [
      [0, 0o2755, 4],
      [EVE, 0o755, 0],
    ] as const) {
      const home = homeOf(0);
      chownSync(home, owner, 4);
      chmodSync(home, 0o2775);
      const at = (name: string) => join(home, name);
      expect(look(at('d'))).toEqual({ type: 'absent', parent: 'directory', ...(owner === 0 ? { setgid: true } : {}) });
      const parents = { parents: true };
      const steps = [make(at('d'), null), make(at('e'), 0o750), write(at('f'), 'x', { mode: 0o640 })];
      expect(await host().commit(steps)).toEqual([null, null, null]);
      expect(await commitOne(make(at('a/b'), null, parents))).toBeNull();
      expect(statSync(at('d'))).toMatchObject({ gid, mode: 0o40000 | mode });
      expect(statSync(at('e'))).toMatchObject({ gid, mode: 0o40750 });
      expect(statSync(at('f'))).toMatchObject({ gid, mode: 0o100640 });
      // Missing parents belong to the user of their directory, as if that user had made them.
      expect(statSync(at('a'))).toMatchObject({ uid: owner, gid: 4, mode: 0o42755 });
    }
  });
});

/** Exchanges each new entry of a directory once with the directory `vault` in it, until it is ended. */
const EXCHANGE = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(sys.argv[1])
known = set(os.listdir('.'))
print('at it', flush=True)
while True:
    for name in os.listdir('.'):
        if name not in known:
            libc.renameat2(-100, name.encode(), -100, b'vault', 2)
            known.add(name)
`;

describe('a user who exchanges new directories for one of root', () => {
  it.for(['apply', 'restore'])('never gets the one of root: %s', async (what, context) => {
    const hasTools = isInstalled('strace') && asEve('python3', '-V').status === 0;
    needs(context, isRoot && process.platform === 'linux' && hasTools, 'root, strace, and python3 of the system');
    const home = homeOf(EVE);
    const vault = join(home, 'vault');
    mkdirSync(vault, { mode: 0o700 });
    writeFileSync(join(vault, 'inside'), 'x');
    const { ino } = statSync(vault);
    const eve = spawn('setpriv', eveRuns('python3', '-c', EXCHANGE, home), { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void eve.kill('SIGKILL'));
    await new Promise((resolve) => eve.stdout.once('data', resolve));
    const [path, user] = [join(home, 'd'), String(EVE)];
    const saved = { type: 'directory', path, uid: EVE, gid: EVE, mode: 0o755 };
    const work = {
      apply: `const { UnixHost } = await import('${DIST}host/this-host.js');
        await new UnixHost({ platform: 'linux' }).commit([${JSON.stringify(make(path, 0o755, { owner: user }))}]);`,
      restore: `const { PathRestorer } = await import('${DIST}snapshot/path-restorer.js');
        await new PathRestorer({ dataDir: '${place()}' }).restore(${JSON.stringify(saved)});`,
    }[what];
    // The other user wins every race for what has just been made.
    const slow = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=mkdir', '-e', 'inject=mkdir:delay_exit=100000'];
    run('strace', ...slow, process.execPath, '--input-type=module', '-e', work ?? '');
    eve.kill('SIGKILL');
    await once(eve, 'close');
    const found = readdirSync(home).find((name) => statSync(join(home, name)).ino === ino) ?? '';
    expect(found).not.toBe('vault');
    expect(statSync(join(home, found))).toMatchObject({ uid: 0, gid: 0, mode: 0o40700 });
    expect(readdirSync(join(home, found))).toEqual(['inside']);
  });
});

describe('a kill in the middle of a write for another user', () => {
  it.for(['apply', 'restore'])('leaves nothing after the next run: %s', async (what, context) => {
    needs(context, isRoot && process.platform === 'linux' && isInstalled('strace'), 'root and strace on Linux');
    const home = homeOf(EVE);
    const path = join(home, 'f');
    const dataDir = place();
    makeSnapshotDirectory(dataDir);
    writeFileSync(path, 'saved');
    chownSync(path, EVE, EVE);
    const [saved] = await new PathSaver({ dataDir }).save([path]);
    writeFileSync(path, 'changed');
    const step = write(path, 'secret', { owner: String(EVE), isSecret: true, mode: 0o600 });
    const restore = `
      const { PathRestorer } = await import('${DIST}snapshot/path-restorer.js');
      await new PathRestorer({ dataDir: '${dataDir}' }).restore(${JSON.stringify(saved)});`;
    const apply = `
      const { UnixHost } = await import('${DIST}host/this-host.js');
      await new UnixHost({ platform: 'linux' }).commit([${JSON.stringify(step)}]);`;
    const kill = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=rename', '-e', 'inject=rename:signal=KILL:when=1'];
    const program = what === 'apply' ? apply : restore;
    run('strace', ...kill, process.execPath, '--input-type=module', '-e', program);
    expect(readFileSync(path, 'utf8')).toBe('changed');
    const left = readdirSync(home).filter((name) => name !== 'f');
    expect(left).toHaveLength(1);
    // The user of the file cannot even look at what is left.
    expect(asEve('find', join(home, left[0] ?? '')).stderr).toContain('Permission denied');
    if (what === 'apply') host().removeTemporaries([path]);
    else expect(await new PathRestorer({ dataDir }).restore(saved as SavedPath)).toBeNull();
    expect(readdirSync(home)).toEqual(['f']);
  });

  it('of an earlier release, which gave its temporary files away, is cleared too', (context) => {
    needs(context, isRoot, 'root');
    const home = homeOf(EVE);
    const dead = run('true').pid.toString(16).padStart(6, '0');
    const left = join(home, `.f.orch-${dead}0123456789.dpkg-tmp`);
    writeFileSync(left, 'secret', { mode: 0o600 });
    chownSync(left, EVE, EVE);
    // A directory that only has the name keeps what is in it.
    const named = join(home, `.d.orch-${dead}0123456789.dpkg-tmp`);
    mkdirSync(named, { mode: 0o700 });
    writeFileSync(join(named, 'theirs'), 'x');
    host().removeTemporaries([join(home, 'f')]);
    expect(readdirSync(home)).toEqual([named.slice(home.length + 1)]);
    expect(readdirSync(named)).toEqual(['theirs']);
  });
});

describe('a temporary directory that cannot be used', () => {
  it('keeps no file from being written or restored, with its access list', async (context) => {
    needs(context, isRoot && process.platform === 'linux', 'root on Linux');
    const directory = place();
    const [old, fresh, back] = ['old', 'fresh', 'back'].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    for (const path of [old, back]) writeFileSync(path, 'old');
    needs(context, succeeds('setfacl', '-m', `u:${EVE}:r`, old, back), 'setfacl and a file system with access lists');
    const dataDir = place();
    makeSnapshotDirectory(dataDir);
    const [saved] = await new PathSaver({ dataDir }).save([back]);
    rmSync(back);
    const program = `
      const { UnixHost } = await import('${DIST}host/this-host.js');
      const { PathRestorer } = await import('${DIST}snapshot/path-restorer.js');
      const host = new UnixHost({ platform: 'linux', dataDir: '/nowhere' });
      const outcomes = await host.commit(${JSON.stringify([write(old, 'new'), write(fresh, 'new')])});
      const reason = await new PathRestorer({ dataDir: '${dataDir}' }).restore(${JSON.stringify(saved)});
      const { end, stdout } = await host.run({ argv: ['echo', 'hi'] });
      console.log(JSON.stringify([...outcomes, reason, end, stdout]));`;
    // Neither memory nor the programs that the agent would use otherwise are of use.
    const none = join(place(), 'none');
    writeFileSync(none, '');
    const spoil = `for d in /run /dev/shm; do mount -t tmpfs -o ro none $d || exit 9; done
      for p in mkfifo sh; do mount --bind "$0" "$(readlink -f "$(command -v $p)")" || exit 9; done; exec "$@"`;
    const node = ['env', 'TMPDIR=/nowhere', process.execPath, '--input-type=module', '-e', program];
    const { stdout, stderr } = run('unshare', '--mount', '--', 'sh', '-c', spoil, none, ...node);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([null, null, null, { how: 'exited', code: 0 }, 'hi\n']);
    expect([old, fresh].map((path) => readFileSync(path, 'utf8'))).toEqual(['new', 'new']);
    for (const path of [old, back]) expect(listOf(path)).toContain(`user:${EVE}:r--`);
  });

  it('and a disk without room for another file does not keep the old content from coming back', async (context) => {
    needs(context, isRoot && process.platform === 'linux', 'root on Linux');
    const directory = join(place(), 'mount');
    mkdirSync(directory);
    const options = 'size=64k,nr_inodes=4,mode=755';
    needs(context, succeeds('mount', '-t', 'tmpfs', '-o', options, 'orch-test', directory), 'the right to mount');
    onTestFinished(() => {
      run('umount', '-l', directory);
    });
    const path = join(directory, 'f');
    writeFileSync(path, 'old', { mode: 0o640 });
    const dataDir = place();
    makeSnapshotDirectory(dataDir);
    const [saved] = await new PathSaver({ dataDir }).save([path]);
    expect(await commitOne(write(path, 'new', { mode: 0o644 }))).toBeNull();
    run('sh', '-c', `cd ${directory}; touch g h i j; cat /dev/zero >g`);
    expect(statfsSync(directory)).toMatchObject({ bfree: 0, ffree: 0 });
    expect(await new PathRestorer({ dataDir }).restore(saved as SavedPath)).toBeNull();
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(statSync(path).mode & 0o7777).toBe(0o640);
  });
});
