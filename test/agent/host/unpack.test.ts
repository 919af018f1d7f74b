/** Archives that are unpacked: what is refused, and what a failure leaves. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import type { FileStep, StepOutcome } from '../../../src/resources/host.js';
import { isRoot, needs, place } from '../../support/agent.js';
import { type TarEntry, tarGzOf, tarOf, zipOf } from '../../support/archives.js';

type Unpack = Extract<FileStep, { do: 'unpack' }>;

/** A directory of a machine, and the agent that unpacks into it. */
class Site {
  readonly root = place();
  readonly path = join(this.root, 'app');
  readonly host: UnixHost;
  private readonly dataDir = place();
  private readonly archives = new Map<string, string>();

  constructor() {
    const files = { bring: async ({ sha256 }: { sha256: string }) => this.archives.get(sha256) ?? '' };
    this.host = new UnixHost({ platform: 'linux', dataDir: this.dataDir, files });
  }

  async unpack(bytes: Buffer, more: Partial<Unpack> = {}): Promise<StepOutcome> {
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const archive = join(this.dataDir, sha256);
    writeFileSync(archive, bytes);
    this.archives.set(sha256, archive);
    const step: Unpack = {
      do: 'unpack',
      path: this.path,
      content: { sha256, source: 'app' },
      format: 'tar',
      strip: 0,
      owner: null,
      group: null,
      replace: false,
      spares: [],
      ...more,
    };
    const [outcome] = await this.host.commit([step]);
    return outcome ?? null;
  }

  async remove(): Promise<StepOutcome> {
    const [outcome] = await this.host.commit([
      { do: 'remove-unpacked', path: this.path, spares: [], keepsDirectory: false },
    ]);
    return outcome ?? null;
  }

  /** What differs, as text. */
  differences(): unknown {
    const [found] = this.host.unpacked([{ path: this.path, owner: null, group: null }]);
    if (found === null || typeof found !== 'object') return found;
    return found.differences.map(({ path, how }) => `${path} ${how}`);
  }

  /** Paths in the directory with contents, targets or a slash, and what is beside it. */
  tree(): readonly string[] {
    return inTree(this.root);
  }
}

function inTree(root: string, below = ''): readonly string[] {
  return readdirSync(join(root, below))
    .sort()
    .flatMap((name) => {
      const path = join(below, name);
      const stats = lstatSync(join(root, path));
      if (stats.isDirectory()) return [`${path}/`, ...inTree(root, path)];
      const what = stats.isSymbolicLink()
        ? `-> ${readlinkSync(join(root, path))}`
        : readFileSync(join(root, path), 'utf8');
      return [`${path} ${what}`];
    });
}

const refusal = (why: string) => ({ code: 'archive_refused', message: `app is refused: ${why}; nothing was changed` });
const file = (name: string, content = 'x', more: Partial<TarEntry> = {}): TarEntry => ({ name, content, ...more });
const link = (name: string, target: string): TarEntry => ({ name, type: 'SymbolicLink', target });

describe('what is unpacked', () => {
  it('gets its permissions, and never setuid, setgid, sticky or write access of others', async () => {
    const site = new Site();
    const bytes = tarOf(
      { name: 'app/bin/', type: 'Directory', mode: 0o1777 },
      file('app/bin/tool', 'run', { mode: 0o6755 }),
      file('app/secret', 's', { mode: 0o400 }),
      { name: 'app/second', type: 'Link', target: 'app/secret', mode: 0o644 },
      link('app/tool', 'bin/tool'),
      link('app/bin/up', '../secret'),
    );
    expect(await site.unpack(bytes, { strip: 1 })).toBeNull();
    expect(site.tree()).toEqual([
      'app/',
      'app/bin/',
      'app/bin/tool run',
      'app/bin/up -> ../secret',
      'app/second s',
      'app/secret s',
      'app/tool -> bin/tool',
    ]);
    const modeOf = (path: string) => (statSync(join(site.path, path)).mode & 0o7777).toString(8);
    expect(['', 'bin', 'bin/tool', 'secret', 'second'].map(modeOf)).toEqual(['755', '755', '755', '600', '644']);
    expect(statSync(join(site.path, 'second')).nlink).toBe(1);
    expect(site.differences()).toEqual([]);
  });

  it.for(['xz', 'bzip2', 'zstd'])('is decompressed with %s where it is installed', async (program, context) => {
    const packed = spawnSync(program, ['-c'], { input: tarOf(file('a', 'text')) });
    needs(context, packed.error === undefined, program);
    const format = ({ xz: 'tar.xz', bzip2: 'tar.bz2', zstd: 'tar.zst' } as const)[program] ?? 'tar';
    const site = new Site();
    expect(await site.unpack(packed.stdout, { format })).toBeNull();
    expect(site.tree()).toEqual(['app/', 'app/a text']);
    const cut = new Site();
    const failed = await cut.unpack(packed.stdout.subarray(0, packed.stdout.length - 20), { format });
    expect(failed).toMatchObject({ code: 'archive_refused' });
    expect(cut.tree()).toEqual([]);
  });

  it('comes from a zip with and without Unix modes', async () => {
    const site = new Site();
    const bytes = zipOf(
      { name: 'a/b/', mode: 0o40700 },
      { name: 'a/b/run', content: 'r', mode: 0o104755 },
      { name: 'a/plain', content: 'p' },
      { name: 'a/link', content: 'b/run', mode: 0o120777 },
    );
    expect(await site.unpack(bytes, { format: 'zip', strip: 1 })).toBeNull();
    expect(site.tree()).toEqual(['app/', 'app/b/', 'app/b/run r', 'app/link -> b/run', 'app/plain p']);
    expect(statSync(join(site.path, 'b/run')).mode & 0o7777).toBe(0o755);
  });
});

describe('an archive is refused before anything changes', () => {
  const MANY = Array.from({ length: 70 }, () => 'd').join('/');
  it.each<[string, string, readonly TarEntry[]]>([
    ['an absolute name', 'the name "/etc/x" is absolute', [file('/etc/x')]],
    ['a name that leads upwards', 'the name "a/../../x" leads upwards with ".."', [file('a/../../x')]],
    ['control characters', 'the name "a?b" has control characters', [file('a\nb')]],
    ['two equal names', 'it has two entries for "a"', [file('a'), file('./a')]],
    ['a file in the place of a directory', 'it has two entries for "a"', [file('a/b'), file('a')]],
    ['a file below a file', '"a/b" lies below "a", which is a file of the archive', [file('a'), file('a/b')]],
    ['a file through a link', '"a/b" lies below "a", which is a link of the archive', [link('a', 'd'), file('a/b')]],
    ['an absolute link', 'the link "a" to "/etc" is absolute', [link('a', '/etc')]],
    [
      'a link out of the directory',
      'the link "d/a" to "../../etc" leads out of the directory',
      [link('d/a', '../../etc')],
    ],
    [
      'a link that another link leads out with',
      'the link "b" to "a/../.." leads upwards with ".." after a name',
      [link('a', 'd'), link('b', 'a/../..')],
    ],
    [
      'a hard link to a file of the machine',
      'the name "/etc/passwd" is absolute',
      [{ name: 'a', type: 'Link', target: '/etc/passwd' }],
    ],
    [
      'a hard link to a link',
      '"b" is a hard link to "a", which is no earlier file of the archive',
      [link('a', 'd'), { name: 'b', type: 'Link', target: 'a' }],
    ],
    [
      'a device',
      '"a" is a character device; only files, directories and links are unpacked',
      [{ name: 'a', type: 'CharacterDevice' }],
    ],
    ['a fifo', '"a" is a fifo; only files, directories and links are unpacked', [{ name: 'a', type: 'FIFO' }]],
    ['a sparse file', '"a" is of the type SparseFile, which is not unpacked', [file('a', 'x', { letter: 'S' })]],
    ['deep names', `the name "${`${MANY}/a`.slice(0, 120)}…" has more than 64 parts`, [file(`${MANY}/a`)]],
    ['nothing', 'it is empty', []],
  ])('for %s', async (_, why, entries) => {
    const site = new Site();
    const good = file('good', 'g');
    expect(await site.unpack(tarOf(...(entries.length === 0 ? [] : [good]), ...entries))).toEqual(refusal(why));
    expect(site.tree()).toEqual([]);
    expect(site.differences()).toBeNull();
  });

  it.each<[string, RegExp, Buffer]>([
    ['an encrypted entry', /"a" is encrypted/, zipOf({ name: 'a', content: 'x', flags: 1 })],
    ['a backslash', /invalid characters in fileName: a\\b/, zipOf({ name: 'a\\b' })],
    ['a name that leads upwards', /invalid relative path: \.\.\/a/, zipOf({ name: '../a' })],
    ['an absolute name', /absolute path: \/a/, zipOf({ name: '/a' })],
    ['a drive letter', /absolute path: C:/, zipOf({ name: 'C:/a' })],
    ['a device', /"a" is a character device/, zipOf({ name: 'a', mode: 0o20644 })],
    ['a link out of the directory', /to "\.\.\/x" leads out/, zipOf({ name: 'a', content: '../x', mode: 0o120777 })],
    ['a name of another type', /is a file by its type/, zipOf({ name: 'a/', mode: 0o100644 })],
    ['an unknown compression', /unsupported compression method: 99/, zipOf({ name: 'a', content: 'x', method: 99 })],
    ['what is no zip', /it is no zip that can be read/, Buffer.from('no zip'.repeat(20))],
  ])('for a zip with %s', async (_, message, bytes) => {
    const site = new Site();
    expect(await site.unpack(bytes, { format: 'zip' })).toMatchObject({
      code: 'archive_refused',
      message: expect.stringMatching(message),
    });
    expect(site.tree()).toEqual([]);
  });

  it('for far more than its own size, too many entries, and what is no tar', async () => {
    const site = new Site();
    const bomb = tarGzOf(file('a', 'x'), { name: 'b', content: Buffer.alloc(65 * 1024 ** 2) });
    expect(await site.unpack(bomb, { format: 'tar.gz' })).toEqual(
      refusal(`it unpacks to more than ${64 * 1024 ** 2} bytes, far more than its own size`),
    );
    const names = Array.from({ length: 70 }, (_, at): TarEntry => ({ name: `n${at}`, type: 'Link', target: 'a' }));
    const copies = tarOf({ name: 'a', content: Buffer.alloc(1024 ** 2) }, ...names);
    expect(await site.unpack(gzipSync(copies), { format: 'tar.gz' })).toEqual(
      refusal(`it unpacks to more than ${64 * 1024 ** 2} bytes, far more than its own size`),
    );
    const many = tarOf(
      ...Array.from({ length: 50_001 }, (_, at): TarEntry => ({ name: `d${at}/`, type: 'Directory' })),
    );
    expect(await site.unpack(gzipSync(many), { format: 'tar.gz' })).toEqual(refusal('it has more than 50000 entries'));
    expect(await site.unpack(tarGzOf(file('a')))).toEqual(refusal('it is no tar, or is compressed once more'));
    expect(await site.unpack(Buffer.from('hello'), { format: 'tar.gz' })).toMatchObject({
      message: expect.stringContaining('it is no tar.gz that can be read: incorrect header check'),
    });
    expect(await site.unpack(tarOf(file('a', 'x'.repeat(2000))).subarray(0, 1100))).toMatchObject({
      message: expect.stringContaining('Truncated input'),
    });
    expect(await site.unpack(tarOf(file('a')), { strip: 1 })).toEqual(
      refusal('nothing is left of it without 1 leading components'),
    );
    expect(site.tree()).toEqual([]);
  }, 60_000);
});

describe('what is there', () => {
  it('stays if it is foreign, and is replaced on request only', async () => {
    const site = new Site();
    mkdirSync(join(site.path, 'lib'), { recursive: true });
    writeFileSync(join(site.path, 'a'), 'mine');
    writeFileSync(join(site.path, 'same'), 'same', { mode: 0o600 });
    writeFileSync(join(site.path, 'lib/own'), 'own');
    const bytes = tarOf(file('a', 'theirs'), file('same', 'same'), file('lib/b', 'b'));
    const before = site.tree();
    expect(await site.unpack(bytes)).toEqual({
      code: 'wrong_type',
      message: `${site.path}/a is there already, and was not unpacked here; move it away, or set "replace: true". Nothing was changed`,
    });
    expect(site.tree()).toEqual(before);
    expect(await site.unpack(bytes, { replace: true })).toBeNull();
    expect(site.tree()).toEqual([
      'app/',
      'app/a theirs',
      'app/lib/',
      'app/lib/b b',
      'app/lib/own own',
      'app/same same',
    ]);
    expect(site.differences()).toEqual([]);
    expect(await site.remove()).toBeNull();
    expect(site.tree()).toEqual(['app/', 'app/lib/', 'app/lib/own own']);
  });

  it('is never reached through a link, and no directory makes way', async () => {
    const site = new Site();
    const outside = place();
    mkdirSync(site.path);
    symlinkSync(outside, join(site.path, 'lib'));
    expect(await site.unpack(tarOf(file('lib/b')))).toEqual({
      code: 'wrong_type',
      message: `${site.path}/lib is a link; move it away. Nothing was changed`,
    });
    mkdirSync(join(site.path, 'dir'));
    expect(await site.unpack(tarOf(file('dir')), { replace: true })).toMatchObject({
      message: `${site.path}/dir is a directory; move it away. Nothing was changed`,
    });
    expect(readdirSync(outside)).toEqual([]);
  });

  it('is repaired, follows a new archive in every type, and goes without what has changed', async () => {
    const site = new Site();
    const first = tarOf(file('a', '1'), file('b/c', '2'), file('d', '3'), link('l', 'a'), file('gone/x', '4'));
    expect(await site.unpack(first)).toBeNull();
    writeFileSync(join(site.path, 'a'), 'changed');
    chmodSync(join(site.path, 'd'), 0o777);
    chmodSync(join(site.path, 'b'), 0o700);
    expect(site.differences()).toEqual(['a changed', 'b mode', 'd mode']);
    const inode = statSync(join(site.path, 'b/c')).ino;
    expect(await site.unpack(first)).toBeNull();
    expect(site.differences()).toEqual([]);
    expect(statSync(join(site.path, 'b/c')).ino).toBe(inode);
    writeFileSync(join(site.path, 'gone/y'), 'foreign');
    const second = tarOf(file('b', '1'), file('d/e', '2'), file('a', '3'), file('l/m', '4'));
    expect(await site.unpack(second)).toBeNull();
    expect(site.tree()).toEqual([
      'app/',
      'app/a 3',
      'app/b 1',
      'app/d/',
      'app/d/e 2',
      'app/gone/',
      'app/gone/y foreign',
      'app/l/',
      'app/l/m 4',
    ]);
    expect(site.differences()).toEqual([]);
    writeFileSync(join(site.path, 'd/e'), 'by hand');
    expect(await site.remove()).toBeNull();
    expect(site.tree()).toEqual(['app/', 'app/d/', 'app/d/e by hand', 'app/gone/', 'app/gone/y foreign']);
    expect(site.differences()).toBeNull();
  });

  it('keeps what another resource declares', async () => {
    const site = new Site();
    expect(await site.unpack(tarOf(file('conf', '1'), file('old', '1')))).toBeNull();
    writeFileSync(join(site.path, 'conf'), 'declared');
    writeFileSync(join(site.path, 'old'), '1');
    expect(await site.unpack(tarOf(file('conf', '2'), file('new', '2')), { spares: ['conf', 'old'] })).toBeNull();
    expect(site.tree()).toEqual(['app/', 'app/conf declared', 'app/new 2', 'app/old 1']);
  });

  it('comes back whole when a file cannot be put in its place', async (context) => {
    const site = new Site();
    const first = tarOf(file('a', '1'), file('b/c', '2'), file('z/last', '3'), file('d', '4'), file('gone', '5'));
    expect(await site.unpack(first)).toBeNull();
    const before = site.tree();
    const second = tarOf(file('a', 'A'), file('new/n', 'N'), file('b/c', 'C'), file('d/e', 'E'), file('z/last', 'Z'));
    needs(context, isRoot, 'root');
    const immutable = join(site.path, 'z');
    needs(context, spawnSync('chattr', ['+i', immutable]).status === 0, 'a file system with immutable directories');
    try {
      expect(await site.unpack(second)).toMatchObject({
        code: 'immutable',
        message: expect.stringMatching(/^cannot unpack an archive into .*: it or its directory is immutable/),
      });
      expect(site.tree()).toEqual(before);
      expect(site.differences()).toEqual([]);
    } finally {
      spawnSync('chattr', ['-i', immutable]);
    }
    expect(await site.unpack(second)).toBeNull();
    expect(site.tree()).toEqual([
      'app/',
      'app/a A',
      'app/b/',
      'app/b/c C',
      'app/d/',
      'app/d/e E',
      'app/new/',
      'app/new/n N',
      'app/z/',
      'app/z/last Z',
    ]);
  });

  it('in the directory of another user has to belong to that user', async (context) => {
    needs(context, isRoot, 'root');
    const site = new Site();
    mkdirSync(site.path);
    chownSync(site.path, 4242, 4242);
    expect(await site.unpack(tarOf(file('a/b')))).toEqual({
      code: 'unsafe_path',
      message: `${site.path} belongs to 4242, so what is unpacked there has to belong to 4242 too; declare it as "owner", or another path`,
    });
    expect(await site.unpack(tarOf(file('a/b')), { owner: '4242', group: '4242' })).toBeNull();
    expect(['a', 'a/b'].map((one) => statSync(join(site.path, one)).uid)).toEqual([4242, 4242]);
  });
});
