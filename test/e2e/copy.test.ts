/** `orch cp` between real processes: both directions, trees, modes, links, special files, refusals, cut links, full disks. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import { IS_EXHAUSTIVE, itInLong } from '../support/exhaustive.js';
import { auditEvents } from '../support/forwarding.js';
import { type Finished, until } from '../support/orch.js';
import { childrenOf, commandLine, NODE_NAME, TerminalFleet } from '../support/terminal-fleet.js';

const MEBIBYTE = 1024 * 1024;
let fleet: TerminalFleet;
/** Directory of this test on the operator's side and on the machine's. */
let here = '';
let there = '';
let round = 0;

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const cp = (...words: readonly string[]): Promise<Finished> => fleet.sandbox.orch(['cp', ...words]);
const remote = (...parts: readonly string[]): string => `${NODE_NAME}:${join(there, ...parts)}`;
const good = async (...words: readonly string[]): Promise<Finished> => {
  const finished = await cp(...words);
  expect(finished.stderr).toBe('');
  expect(finished.status).toBe(0);
  return finished;
};
const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);
const left = (directory: string): readonly string[] =>
  readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.orch-cp-'));

beforeAll(async () => {
  fleet = await TerminalFleet.start();
  const root = realpathSync(fleet.sandbox.root);
  mkdirSync(join(root, 'machine'));
  mkdirSync(join(root, 'secret'));
  writeFileSync(join(root, 'secret', 'key'), 'private');
  const settings = { copy: { read: [join(root, 'machine')], write: [join(root, 'machine')] } };
  await fleet.agent.stop();
  writeFileSync(fleet.sandbox.path('agent.yaml'), JSON.stringify(settings));
  fleet.startAgent();
  await until(async () => (await permitsCopy()).startsWith('read '), 'the agent reports its settings');
});

afterAll(async () => {
  await fleet.dispose();
});

beforeEach(() => {
  round += 1;
  const root = realpathSync(fleet.sandbox.root);
  here = join(root, `here-${round}`);
  there = join(root, 'machine', `${round}`);
  mkdirSync(here);
  mkdirSync(there);
});

async function permitsCopy(): Promise<string> {
  const agent = await fleet.sandbox.json<Agent>(['agents', 'show', NODE_NAME]);
  return String((agent.attributes as Readonly<Record<string, unknown>>).permits_copy ?? '');
}

/** A tree with files, links, an empty directory and awkward names. */
function plant(root: string): void {
  mkdirSync(join(root, 'a', 'b'), { recursive: true });
  mkdirSync(join(root, 'empty'));
  writeFileSync(join(root, 'a', 'one'), 'one\n', { mode: 0o640 });
  writeFileSync(join(root, 'a', 'b', 'two'), randomBytes(700_000));
  writeFileSync(join(root, 'nothing'), '');
  writeFileSync(join(root, 'run me'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(join(root, 'new\nline "quoted" ä'), 'awkward');
  writeFileSync(Buffer.concat([Buffer.from(`${root}/bytes-`), Buffer.from([0xff, 0xfe])]), 'no text');
  symlinkSync('a/one', join(root, 'link'));
  symlinkSync('/etc/passwd', join(root, 'outside'));
  symlinkSync('nowhere', join(root, 'dangling'));
  utimesSync(join(root, 'a', 'one'), 1_500_000_000, 1_500_000_000);
  utimesSync(join(root, 'a'), 1_400_000_000, 1_400_000_000);
}

/** Names, kinds, targets of links and hashes below a directory, as `find` and `sha256sum` see them. */
const pictureOf = (root: string): string =>
  execFileSync(
    'sh',
    ['-c', 'find . -printf "%P %y %l\\n" | LC_ALL=C sort; find . -type f -exec sha256sum {} + | LC_ALL=C sort'],
    { cwd: root, encoding: 'latin1' },
  );

describe('one file', () => {
  it.each(['to', 'from'] as const)(
    'is copied %s a machine with a right hash, and the audit log tells it',
    async (way) => {
      const bytes = randomBytes(3 * MEBIBYTE + 17);
      const [source, target] = way === 'to' ? [here, there] : [there, here];
      writeFileSync(join(source, 'data'), bytes, { mode: 0o640 });
      const words = way === 'to' ? [join(here, 'data'), remote('copy')] : [remote('data'), join(here, 'copy')];
      const { stdout } = await good(...words);
      expect(stdout).toBe(`${NODE_NAME}: 1 file, 3.0 MiB, SHA-256 ${sha256(bytes)}\n`);
      expect(readFileSync(join(target, 'copy')).equals(bytes)).toBe(true);
      expect(modeOf(join(target, 'copy'))).toBe('640');
      expect(left(target)).toEqual([]);
      const [closed] = await auditEvents(fleet.sandbox, 'copy.closed');
      expect(closed?.metadata).toMatchObject({
        direction: way === 'to' ? 'write' : 'read',
        targets: [join(there, way === 'to' ? 'copy' : 'data')],
        files: 1,
        bytes: bytes.length,
        failed: 0,
        sha256: sha256(bytes),
        reason: 'closed',
      });
      const [opened] = await auditEvents(fleet.sandbox, 'copy.opened');
      expect(opened?.metadata.session_id).toBe(closed?.metadata.session_id);
    },
  );

  it('goes into a directory, replaces a file with its mode, and breaks no link of another name', async () => {
    writeFileSync(join(here, 'data'), 'new');
    writeFileSync(join(there, 'data'), 'old', { mode: 0o604 });
    linkSync(join(there, 'data'), join(there, 'other'));
    await good(join(here, 'data'), `${remote()}/`);
    expect(readFileSync(join(there, 'data'), 'utf8')).toBe('new');
    expect(modeOf(join(there, 'data'))).toBe('604');
    expect(readFileSync(join(there, 'other'), 'utf8')).toBe('old');
  });

  it('keeps a hole a hole', async () => {
    // More than 32 bits count takes seconds of the processor on each side.
    const size = (IS_EXHAUSTIVE ? 3 * 1024 : 64) * MEBIBYTE + 5;
    writeFileSync(join(here, 'sparse'), 'begin');
    truncateSync(join(here, 'sparse'), size);
    const { stdout } = await good(join(here, 'sparse'), remote());
    expect(stdout).toContain(IS_EXHAUSTIVE ? '3.0 GiB' : '64.0 MiB');
    const { size: copied, blocks } = statSync(join(there, 'sparse'));
    expect(copied).toBe(size);
    expect(blocks * 512).toBeLessThan(MEBIBYTE);
  });
});

describe('a tree', () => {
  it('is the same on the other side, in both directions', async () => {
    mkdirSync(join(here, 'site'));
    plant(join(here, 'site'));
    await good('-r', join(here, 'site'), remote('copy'));
    expect(pictureOf(join(there, 'copy'))).toBe(pictureOf(join(here, 'site')));
    expect([modeOf(join(there, 'copy', 'a')), modeOf(join(there, 'copy', 'run me'))]).toEqual(['755', '755']);
    mkdirSync(join(here, 'back'));
    await good('-r', remote('copy'), join(here, 'back'));
    expect(pictureOf(join(here, 'back', 'copy'))).toBe(pictureOf(join(here, 'site')));
    expect([...left(there), ...left(here)]).toEqual([]);
    // Again, over what is there.
    await good('-r', join(here, 'site', '.'), remote());
    await good('-r', join(here, 'site'), remote());
    expect(pictureOf(join(there, 'site'))).toBe(pictureOf(join(here, 'site')));
  });

  it('keeps modes and times with --preserve, without bits that give rights away', async () => {
    mkdirSync(join(here, 'site'));
    plant(join(here, 'site'));
    writeFileSync(join(here, 'site', 'setuid'), 'x');
    chmodSync(join(here, 'site', 'setuid'), 0o4757);
    chmodSync(join(here, 'site', 'empty'), 0o777);
    await good('-rp', join(here, 'site'), remote());
    const at = (name: string) => join(there, 'site', name);
    expect([modeOf(at('a/one')), modeOf(at('run me')), modeOf(at('empty')), modeOf(at('setuid'))]).toEqual([
      '640',
      '755',
      '777',
      '757',
    ]);
    expect([statSync(at('a/one')).mtimeMs, statSync(at('a')).mtimeMs]).toEqual([1.5e12, 1.4e12]);
  });

  it('tells directories without --recursive, special files and what is missing, and copies the rest', async () => {
    mkdirSync(join(here, 'site'));
    writeFileSync(join(here, 'site', 'file'), 'x');
    execFileSync('mkfifo', [join(here, 'site', 'pipe')]);
    const plain = await cp(join(here, 'site'), remote());
    expect(plain.status).toBe(3);
    expect(plain.stderr).toContain(`${NODE_NAME}: site: it is a directory: copy it with --recursive`);
    const { status, stderr } = await cp('-r', join(here, 'site'), join(here, 'missing'), remote());
    expect(status).toBe(3);
    expect(stderr).toContain('site/pipe: a named pipe is not copied');
    expect(stderr).toContain('missing: no such file or directory');
    expect(readdirSync(join(there, 'site'))).toEqual(['file']);
    const gone = await cp(remote('nothing'), here);
    expect(gone.status).toBe(3);
    expect(gone.stderr).toContain('no such file or directory');
  });

  it('never writes through a link that is there', async () => {
    mkdirSync(join(here, 'site', 'deep'), { recursive: true });
    writeFileSync(join(here, 'site', 'file'), 'new');
    writeFileSync(join(here, 'site', 'deep', 'key'), 'stolen');
    mkdirSync(join(there, 'site'));
    symlinkSync(join(realpathSync(fleet.sandbox.root), 'secret', 'key'), join(there, 'site', 'file'));
    symlinkSync(join(realpathSync(fleet.sandbox.root), 'secret'), join(there, 'site', 'deep'));
    const { status, stderr } = await cp('-r', join(here, 'site'), remote());
    expect(status).toBe(3);
    expect(stderr).toContain('site/deep: a link is there, and links are not followed');
    expect(readFileSync(join(there, 'site', 'file'), 'utf8')).toBe('new');
    expect(lstatSync(join(there, 'site', 'file')).isSymbolicLink()).toBe(false);
    expect(readFileSync(fleet.sandbox.path('secret', 'key'), 'utf8')).toBe('private');
  });

  it('of thousands of files arrives whole', async () => {
    mkdirSync(join(here, 'many'));
    const count = IS_EXHAUSTIVE ? 10_000 : 2_000;
    for (let at = 0; at < count; at += 1) {
      const directory = join(here, 'many', `${at % 100}`);
      if (at < 100) mkdirSync(directory);
      writeFileSync(join(directory, `${at}`), `${at}`);
    }
    const { stdout } = await good('-r', join(here, 'many'), remote());
    expect(stdout).toContain(`${count} files`);
    expect(pictureOf(join(there, 'many'))).toBe(pictureOf(join(here, 'many')));
  });
});

describe('several machines', () => {
  it('get the same files, and their files arrive in a directory for each', async () => {
    const { sandbox } = fleet;
    const words = [
      'agent',
      'connect',
      `127.0.0.1:${fleet.agentCable.port}`,
      '--orchestrator-key',
      fleet.orchestratorKey,
    ];
    const other = sandbox.start([
      ...words,
      '--data-dir',
      sandbox.path('other'),
      '--config',
      sandbox.path('agent.yaml'),
    ]);
    const agents = () => sandbox.json<Agent[]>(['agents', 'list']);
    const pending = async () => (await agents()).find(({ status }) => status === 'pending')?.node_id ?? '';
    await until(async () => (await pending()) !== '', 'the other agent waits');
    await sandbox.orch(['agents', 'approve', await pending(), '--name', 'web-02', '--yes']);
    const isThere = async () => (await agents()).filter(({ connected }) => connected).length === 2;
    await until(isThere, 'both are connected');
    writeFileSync(join(here, 'motd'), 'welcome');
    const unasked = await cp('--status', 'online', join(here, 'motd'), `:${there}`);
    expect([unasked.status, unasked.stderr]).toEqual([64, expect.stringContaining('needs consent')]);
    const { stdout } = await good('--status', 'online', '--yes', join(here, 'motd'), `:${there}`);
    const line = `1 file, 7 B, SHA-256 ${sha256(Buffer.from('welcome'))}`;
    expect(stdout.split('\n').sort()).toEqual(['', `web-01: ${line}`, `web-02: ${line}`]);
    mkdirSync(join(here, 'by-name'));
    await good(remote('motd'), `web-02:${join(there, 'motd')}`, join(here, 'by-name'));
    await good(`web-0[1-2]:${join(there, 'motd')}`, here);
    const all = ['by-name/web-01/motd', 'by-name/web-02/motd', 'web-01/motd', 'web-02/motd'];
    for (const path of all) expect(readFileSync(join(here, path), 'utf8')).toBe('welcome');
    await other.stop();
    await until(async () => !(await isThere()), 'one is away');
    const away = await cp('-l', '*', '--yes', join(here, 'motd'), `:${there}`);
    expect(away.stdout).toContain(`web-01: ${line}`);
    expect([away.status, away.stdout]).toEqual([5, expect.stringContaining('web-02: 0 files, 0 B, not finished')]);
    await sandbox.orch(['agents', 'remove', 'web-02', '--yes']);
  });
});

describe('the settings of the machine', () => {
  const outside = () => join(realpathSync(fleet.sandbox.root), 'secret');

  it('refuse paths that they do not name, and the audit log tells it', async () => {
    for (const words of [
      [`${NODE_NAME}:${outside()}/key`, here],
      [join(here, 'x'), `${NODE_NAME}:${outside()}/new`],
      [`${NODE_NAME}:${join(there, '..', '..', 'secret', 'key')}`, here],
      [`${NODE_NAME}:${join(there, '..')}x`, here],
    ]) {
      writeFileSync(join(here, 'x'), 'x');
      const { status, stderr } = await cp(...words);
      expect(status).toBe(1);
      expect(stderr).toContain('this agent does not permit orch cp to');
    }
    const refused = await auditEvents(fleet.sandbox, 'copy.refused');
    expect(refused.length).toBe(4);
    expect(refused[0]?.metadata).toMatchObject({ direction: 'read', reason: 'copy_refused' });
  });

  it('hold for the real path, behind any link', async () => {
    symlinkSync(outside(), join(there, 'way'));
    symlinkSync(join(outside(), 'key'), join(there, 'file'));
    writeFileSync(join(here, 'x'), 'x');
    for (const words of [
      [remote('way', 'key'), here],
      [remote('file'), here],
      ['-r', remote('way'), here],
      [join(here, 'x'), remote('way', 'new')],
      [join(here, 'x'), remote('way')],
      [join(here, 'x'), remote('file')],
    ]) {
      const { status, stderr } = await cp(...words);
      expect([status, stderr]).toEqual([expect.any(Number), expect.stringContaining('which leads to')]);
      expect(status).not.toBe(0);
    }
    expect(readdirSync(outside())).toEqual(['key']);
    expect(readFileSync(join(outside(), 'key'), 'utf8')).toBe('private');
    expect(readdirSync(here)).toEqual(['x']);
  });

  it('end copies when they are taken back', async () => {
    const config = fleet.sandbox.path('agent.yaml');
    const before = readFileSync(config);
    writeFileSync(config, JSON.stringify({ copy: { read: [], write: [] } }));
    writeFileSync(join(here, 'x'), 'x');
    await until(async () => (await cp(join(here, 'x'), remote())).status === 1, 'the agent has read its settings');
    const { stderr } = await cp(join(here, 'x'), remote());
    expect(stderr).toContain('this agent permits orch cp to write nothing; copy.write would have to name');
    writeFileSync(config, before);
    await until(async () => (await cp(join(here, 'x'), remote())).status === 0, 'the agent has read its settings');
  });
});

describe('failures', () => {
  it('of the disk are told for each file, leave nothing behind, and stop no other file', async () => {
    const small = fleet.sandbox.path('machine', `small-${round}`);
    mkdirSync(small);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', small], { stdio: 'ignore' });
    } catch {
      return;
    }
    try {
      writeFileSync(join(here, 'big'), randomBytes(4 * MEBIBYTE));
      writeFileSync(join(here, 'small'), 'fits');
      const { status, stderr } = await cp(
        join(here, 'big'),
        join(here, 'small'),
        `${NODE_NAME}:${realpathSync(small)}`,
      );
      expect(stderr).toContain(`${NODE_NAME}: big: no space left on the disk`);
      expect(status).toBe(3);
      expect(readdirSync(small)).toEqual(['small']);
    } finally {
      execFileSync('umount', [small]);
    }
  });

  it('of the local disk are told, too', async () => {
    writeFileSync(join(there, 'data'), 'x');
    mkdirSync(join(here, 'data'));
    const { status, stderr } = await cp(remote('data'), here);
    expect(status).toBe(3);
    expect(stderr).toContain('data: a directory is there');
    expect(left(here)).toEqual([]);
  });
});

describe('a connection that is cut', () => {
  const size = 96 * MEBIBYTE;

  const hostPid = (): number | undefined =>
    childrenOf(fleet.agentPid).find((pid) => commandLine(pid).includes('forward-host'));

  /** Waits until an incomplete file of at least a few MiB is there. */
  async function halfWay(directory: string): Promise<void> {
    await until(() => {
      const [name] = left(directory);
      return (
        name !== undefined && existsSync(join(directory, name)) && statSync(join(directory, name)).size > 4 * MEBIBYTE
      );
    }, 'a part has arrived');
  }

  const cuts: Readonly<Record<string, () => Promise<void> | void>> = {
    'between the operator and the orchestrator': () => fleet.operatorCable.cut(),
    'between the orchestrator and the agent': () => fleet.agentCable.cut(),
    'by a restart of the orchestrator': () => fleet.restartServer('SIGTERM'),
    'by a crash of the process of the copies': () => {
      process.kill(hostPid() ?? 0, 'SIGKILL');
    },
    'by a kill of the agent': async () => {
      await fleet.agent.stop('SIGKILL');
      fleet.startAgent();
    },
  };

  const every = Object.keys(cuts).flatMap((cut) => [[cut, 'to'] as const, [cut, 'from'] as const]);
  it.each(IS_EXHAUSTIVE ? every : every.filter((_, at) => [3, 4, 8].includes(at)))(
    '%s goes on, %s the machine',
    async (cut, way) => {
      const [source, target] = way === 'to' ? [here, there] : [there, here];
      mkdirSync(join(source, 'tree'));
      writeFileSync(join(source, 'tree', 'a'), 'first');
      writeFileSync(join(source, 'tree', 'data'), randomBytes(size));
      writeFileSync(join(source, 'tree', 'z'), 'last');
      mkdirSync(join(target, 'into'));
      // The first session makes the target. The next one must not go into it.
      const copy = join(target, 'into', 'copy');
      const words = way === 'to' ? [join(here, 'tree'), remote('into', 'copy')] : [remote('tree'), copy];
      const running = fleet.sandbox.start(['cp', '-r', ...words]);
      await halfWay(join(target, 'into'));
      expect(existsSync(join(copy, 'data'))).toBe(false);
      await cuts[cut]?.();
      const status = await new Promise((resolve) => running.process.once('close', resolve));
      expect(running.output()).toContain('the copy goes on when it is back');
      expect(running.output()).toContain('3 files, 96.0 MiB');
      expect(status).toBe(0);
      expect(pictureOf(copy)).toBe(pictureOf(join(source, 'tree')));
      expect(left(target)).toEqual([]);
      expect(modeOf(copy)).toBe('755');
      await fleet.connected();
    },
  );

  // It is noticed after a minute.
  itInLong('without a word goes on when it is noticed', async () => {
    writeFileSync(join(here, 'data'), randomBytes(size));
    const running = fleet.sandbox.start(['cp', join(here, 'data'), remote('copy')]);
    await halfWay(there);
    fleet.agentCable.silence();
    const status = await new Promise((resolve) => running.process.once('close', resolve));
    expect(running.output()).toContain(`SHA-256 ${sha256(readFileSync(join(here, 'data')))}`);
    expect(status).toBe(0);
    expect(readFileSync(join(there, 'copy')).equals(readFileSync(join(here, 'data')))).toBe(true);
    expect(left(there)).toEqual([]);
    await fleet.connected();
  });

  it('by Ctrl-C leaves nothing incomplete on either side', async () => {
    writeFileSync(join(here, 'data'), randomBytes(size));
    writeFileSync(join(there, 'data'), randomBytes(size));
    for (const [words, target] of [
      [[join(here, 'data'), remote('copy')], there],
      [[remote('data'), join(here, 'copy')], here],
    ] as const) {
      const running = fleet.sandbox.start(['cp', ...words]);
      await halfWay(target);
      expect(await running.stop('SIGINT')).toBe(130);
      await until(() => left(target).length === 0, 'the incomplete file is gone');
      expect(existsSync(join(target, 'copy'))).toBe(false);
    }
  });
});
