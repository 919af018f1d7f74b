/** Faults of a disk during a write: the file that was there is whole in every case, and nothing stays beside it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, type TestContext } from 'vitest';
import type { FileStep } from '../../../src/resources/host.js';
import { commitOne, host, isRoot, needs, place, run, succeeds, write } from '../../support/agent.js';
import { isInstalled } from '../../support/is-installed.js';

/** A file system of its own on a directory. */
function mounted(context: TestContext, options: string): string {
  needs(context, isRoot && process.platform === 'linux', 'root on Linux');
  const directory = join(place(), 'mount');
  mkdirSync(directory);
  needs(context, succeeds('mount', '-t', 'tmpfs', '-o', options, 'orch-test', directory), 'the right to mount');
  onTestFinished(() => {
    run('umount', '-l', directory);
  });
  return directory;
}

describe('a full disk', () => {
  it('leaves the old file whole and says disk_full', async (context) => {
    const directory = mounted(context, 'size=256k');
    const file = join(directory, 'f');
    writeFileSync(file, 'old');
    expect(await commitOne(write(file, 'x'.repeat(400_000)))).toMatchObject({
      code: 'disk_full',
      message: `cannot write ${file}: the disk is full (ENOSPC)`,
    });
    expect(readFileSync(file, 'utf8')).toBe('old');
    expect(readdirSync(directory)).toEqual(['f']);
  });

  it('fails what does not fit and keeps what does', async (context) => {
    const directory = mounted(context, 'size=256k');
    const steps = Array.from({ length: 8 }, (_, index) => write(join(directory, `f${index}`), 'x'.repeat(50_000)));
    const outcomes = await host().commit(steps);
    const codes = outcomes.map((outcome) => outcome?.code ?? 'written');
    expect(codes).toContain('disk_full');
    expect(codes).toContain('written');
    const there = codes.flatMap((code, index) => (code === 'written' ? [`f${index}`] : []));
    expect(readdirSync(directory)).toEqual(there);
    for (const name of there) expect(statSync(join(directory, name)).size).toBe(50_000);
  });

  it('has no inode left for a file or a directory', async (context) => {
    const directory = mounted(context, 'size=1m,nr_inodes=2');
    writeFileSync(join(directory, 'f'), 'old');
    const make: FileStep = { do: 'make-directory', path: join(directory, 'd'), owner: null, group: null, mode: 0o755 };
    expect(await host().commit([write(join(directory, 'f'), 'new'), make])).toMatchObject([
      { code: 'disk_full' },
      { code: 'disk_full' },
    ]);
    expect(readFileSync(join(directory, 'f'), 'utf8')).toBe('old');
  });
});

describe('a read-only file system', () => {
  it('is named as such for every step', async (context) => {
    const directory = mounted(context, 'size=1m');
    writeFileSync(join(directory, 'f'), 'old');
    mkdirSync(join(directory, 'd'));
    needs(context, succeeds('mount', '-o', 'remount,ro', directory), 'the right to remount');
    const steps: FileStep[] = [
      write(join(directory, 'f'), 'new'),
      write(join(directory, 'new'), 'new'),
      { do: 'make-directory', path: join(directory, 'e'), owner: null, group: null, mode: 0o755 },
      { do: 'set-metadata', path: join(directory, 'f'), expect: 'file', owner: null, group: null, mode: 0o600 },
      { do: 'remove-file', path: join(directory, 'f') },
      { do: 'remove-directory', path: join(directory, 'd') },
    ];
    expect((await host().commit(steps)).map((outcome) => outcome?.code)).toEqual(steps.map(() => 'read_only'));
    expect(readFileSync(join(directory, 'f'), 'utf8')).toBe('old');
  });
});

describe('a mount point', () => {
  it('is busy, as /etc/hosts is in a container', async (context) => {
    needs(context, isRoot && process.platform === 'linux', 'root on Linux');
    const directory = place();
    const [hosts, source] = [join(directory, 'hosts'), join(directory, 'source')];
    writeFileSync(hosts, 'below');
    writeFileSync(source, 'mounted');
    needs(context, succeeds('mount', '--bind', source, hosts), 'the right to mount');
    onTestFinished(() => {
      run('umount', '-l', hosts);
    });
    expect(await commitOne(write(hosts, 'new'))).toMatchObject({
      code: 'busy',
      message: expect.stringContaining('it is in use or a mount point'),
    });
    expect(await commitOne({ do: 'remove-file', path: hosts })).toMatchObject({ code: 'busy' });
    expect(readFileSync(hosts, 'utf8')).toBe('mounted');
    expect(readdirSync(directory).sort()).toEqual(['hosts', 'source']);
  });
});

describe('an immutable file', () => {
  it('is named as such and stays as it is', async (context) => {
    needs(context, isRoot, 'root');
    const directory = place();
    const file = join(directory, 'f');
    writeFileSync(file, 'old');
    needs(context, succeeds('chattr', '+i', file), 'a file system with chattr');
    onTestFinished(() => {
      run('chattr', '-i', file);
    });
    const steps: FileStep[] = [
      write(file, 'new'),
      { do: 'set-metadata', path: file, expect: 'file', owner: '1234', group: null, mode: null },
      { do: 'remove-file', path: file },
    ];
    expect((await host().commit(steps)).map((outcome) => outcome?.code)).toEqual(steps.map(() => 'immutable'));
    expect(readFileSync(file, 'utf8')).toBe('old');
    expect(readdirSync(directory)).toEqual(['f']);
  });

  it('and so is an immutable directory', async (context) => {
    needs(context, isRoot, 'root');
    const directory = join(place(), 'd');
    mkdirSync(directory);
    needs(context, succeeds('chattr', '+i', directory), 'a file system with chattr');
    onTestFinished(() => {
      run('chattr', '-i', directory);
    });
    expect(await commitOne(write(join(directory, 'f'), ''))).toMatchObject({ code: 'immutable' });
  });
});

describe('an ordinary user', () => {
  it('is refused with the reason, and may set the mode of what it owns', async (context) => {
    needs(context, isRoot, 'root, to become another user');
    const directory = place();
    chmodSync(directory, 0o755);
    const [own, foreign] = [join(directory, 'own'), join(directory, 'foreign')];
    mkdirSync(own);
    mkdirSync(foreign);
    writeFileSync(join(foreign, 'f'), 'old');
    execFileSync('chown', ['65534', own]);
    const dist = new URL('../../../dist/src/agent/host/this-host.js', import.meta.url).pathname;
    needs(context, existsSync(dist), 'a build');
    const steps: FileStep[] = [
      write(join(foreign, 'f'), 'new'),
      write(join(own, 'f'), 'x', { mode: 0o0 }),
      write(join(own, 'g'), 'x', { owner: '0' }),
      { do: 'set-metadata', path: join(foreign, 'f'), expect: 'file', owner: null, group: null, mode: 0o777 },
    ];
    const more: FileStep = {
      do: 'set-metadata',
      path: join(own, 'f'),
      expect: 'file',
      owner: null,
      group: null,
      mode: 0o640,
    };
    const program = `
      const { UnixHost } = await import(${JSON.stringify(dist)});
      process.setgroups([]); process.setgid(65534); process.setuid(65534);
      const host = new UnixHost({ platform: 'linux' });
      const steps = ${JSON.stringify(steps)};
      const outcomes = [...await host.commit(steps), ...await host.commit([${JSON.stringify(more)}])];
      const [unreadable] = host.observe([{ path: '/etc/shadow', content: true, entries: false }]);
      console.log(JSON.stringify([...outcomes.map((one) => one?.code ?? null), unreadable.code ?? unreadable.type]));`;
    const { stdout, stderr } = run(process.execPath, '--input-type=module', '-e', program);
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([
      'permission_denied',
      null,
      'permission_denied',
      'permission_denied',
      null,
      'permission_denied',
    ]);
    expect(statSync(join(own, 'f')).mode & 0o7777).toBe(0o640);
    expect(readdirSync(own)).toEqual(['f']);
  });
});

describe('a sync that fails', () => {
  it('leaves the old file and nothing else', async (context) => {
    needs(context, process.platform === 'linux' && isInstalled('strace'), 'strace');
    const directory = place();
    writeFileSync(join(directory, 'f'), 'old');
    const dist = new URL('../../../dist/src/agent/host/this-host.js', import.meta.url).pathname;
    needs(context, existsSync(dist), 'a build');
    const program = `
      const { UnixHost } = await import(${JSON.stringify(dist)});
      const [outcome] = await new UnixHost({ platform: 'linux' }).commit([${JSON.stringify(write(join(directory, 'f'), 'new'))}]);
      console.log(JSON.stringify(outcome));`;
    const inject = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync', '-e', 'inject=fsync:error=EIO:when=1'];
    const { stdout } = run('strace', ...inject, process.execPath, '--input-type=module', '-e', program);
    expect(JSON.parse(stdout)).toMatchObject({ code: 'apply_failed', message: expect.stringContaining('EIO') });
    expect(readFileSync(join(directory, 'f'), 'utf8')).toBe('old');
    expect(readdirSync(directory)).toEqual(['f']);
  });
});
