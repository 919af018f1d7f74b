import { createHash } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
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
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { reachByPath } from '../../../src/agent/host/safe-walk.js';
import { UnixHost } from '../../../src/agent/host/this-host.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { FileStep, SourceFile } from '../../../src/resources/host.js';
import { commitOne, host, isRoot, look, needs, place, succeeds, write } from '../../support/agent.js';
import { drawn } from '../../support/exhaustive.js';

const modeOf = (path: string): number => statSync(path).mode & 0o7777;

describe('write-file over a content', () => {
  it.each([
    ['another content', 'theirs\n'],
    ['a longer content', 'old\nmore\n'],
    ['an empty file', ''],
  ])('leaves %s as it is, with the reason', async (_, theirs) => {
    const file = join(place(), 'f');
    writeFileSync(file, theirs);
    expect(await commitOne(write(file, 'new\n', { over: 'old\n' }))).toEqual({
      code: 'busy',
      message: `another program changed ${file} in the meantime, so it was left as it is; apply again`,
    });
    expect(readFileSync(file, 'utf8')).toBe(theirs);
  });

  it('replaces exactly that content, and makes a file only where there is none', async () => {
    const file = join(place(), 'f');
    expect(await commitOne(write(file, 'ä\n', { over: null }))).toBeNull();
    expect(await commitOne(write(file, 'new\n', { over: 'ä\n' }))).toBeNull();
    expect(await commitOne(write(file, 'newer\n', { over: null }))).toMatchObject({ code: 'busy' });
    expect(readFileSync(file, 'utf8')).toBe('new\n');
  });

  it('is done once where two steps go by the same content', async () => {
    const file = join(place(), 'f');
    writeFileSync(file, 'old');
    const outcomes = await host().commit([
      write(file, 'old a', { over: 'old' }),
      write(file, 'old b', { over: 'old' }),
    ]);
    expect(outcomes).toEqual([null, expect.objectContaining({ code: 'busy' })]);
    expect(readFileSync(file, 'utf8')).toBe('old a');
  });
});

describe('make-link', () => {
  const link = (
    path: string,
    target: string,
    more: Partial<Extract<FileStep, { do: 'make-link' }>> = {},
  ): FileStep => ({
    do: 'make-link',
    path,
    target,
    owner: null,
    group: null,
    replace: false,
    ...more,
  });

  it('makes a link, moves it, and takes the place of a file only where that is wanted', async () => {
    const directory = place();
    const path = join(directory, 'link');
    expect(await commitOne(link(path, 'a'))).toBeNull();
    expect(await commitOne(link(path, '../b c'))).toBeNull();
    expect(readlinkSync(path)).toBe('../b c');
    writeFileSync(join(directory, 'file'), 'x');
    expect(await commitOne(link(join(directory, 'file'), 'a'))).toEqual({
      code: 'wrong_type',
      message: `${join(directory, 'file')} is no longer a link`,
    });
    expect(await commitOne(link(join(directory, 'file'), 'a', { replace: true }))).toBeNull();
    mkdirSync(join(directory, 'directory'));
    expect(await commitOne(link(join(directory, 'directory'), 'a', { replace: true }))).toMatchObject({
      code: 'wrong_type',
    });
    expect(readdirSync(directory).sort()).toEqual(['directory', 'file', 'link']);
  });

  it('sets the owner of the link, keeps that of the one it replaces, and never touches the target', async (context) => {
    needs(context, isRoot, 'root');
    const directory = place();
    const path = join(directory, 'link');
    writeFileSync(join(directory, 'target'), '');
    expect(await commitOne(link(path, 'target', { owner: '1234', group: '2345' }))).toBeNull();
    expect(lstatSync(path)).toMatchObject({ uid: 1234, gid: 2345 });
    expect(await commitOne(link(path, './target'))).toBeNull();
    expect(lstatSync(path)).toMatchObject({ uid: 1234, gid: 2345 });
    expect(statSync(path)).toMatchObject({ uid: 0, gid: 0 });
  });
});

describe('write-file', () => {
  it('makes a file with mode 0644 and leaves nothing beside it', async () => {
    const directory = place();
    expect(await commitOne(write(join(directory, 'motd'), 'grüezi\n'))).toBeNull();
    expect(readFileSync(join(directory, 'motd'), 'utf8')).toBe('grüezi\n');
    expect(modeOf(join(directory, 'motd'))).toBe(0o644);
    expect(readdirSync(directory)).toEqual(['motd']);
  });

  it('gives exactly the mode that is wanted, whatever the umask', async () => {
    const file = join(place(), 'f');
    const before = process.umask(0o077);
    try {
      expect(await commitOne(write(file, '', { mode: 0o6777 }))).toBeNull();
    } finally {
      process.umask(before);
    }
    expect(modeOf(file)).toBe(0o6777);
  });

  it('keeps the mode of the file it replaces but for setuid, and the file itself whole for whoever has it open', async () => {
    const directory = place();
    const file = join(directory, 'f');
    writeFileSync(file, 'old');
    chmodSync(file, 0o4750);
    linkSync(file, join(directory, 'other-name'));
    expect(await commitOne(write(file, 'new'))).toBeNull();
    expect(readFileSync(file, 'utf8')).toBe('new');
    expect(modeOf(file)).toBe(0o750);
    expect(readFileSync(join(directory, 'other-name'), 'utf8')).toBe('old');
  });

  it('keeps owner and group, sets those that are named, and has setuid only where it is wanted', async (context) => {
    needs(context, isRoot, 'root');
    const file = join(place(), 'f');
    writeFileSync(file, 'old');
    chownSync(file, 1234, 2345);
    chmodSync(file, 0o6755);
    expect(await commitOne(write(file, 'new'))).toBeNull();
    expect(statSync(file)).toMatchObject({ uid: 1234, gid: 2345 });
    expect(modeOf(file)).toBe(0o755);
    expect(await commitOne(write(file, 'newer', { owner: '4321', mode: 0o4711 }))).toBeNull();
    expect(statSync(file)).toMatchObject({ uid: 4321, gid: 2345 });
    expect(modeOf(file)).toBe(0o4711);
  });

  it('takes over a file that a user made when it is to hold a secret', async (context) => {
    needs(context, isRoot, 'root');
    const directory = place();
    const [early, declared, group] = ['early', 'declared', 'group'].map((name) => join(directory, name)) as [
      string,
      string,
      string,
    ];
    for (const file of [early, declared, group]) {
      writeFileSync(file, '');
      chmodSync(file, 0o666);
      chownSync(file, 1234, 1234);
    }
    const secret = { isSecret: true, mode: 0o640 } as const;
    expect(await commitOne(write(early, 'secret', secret))).toBeNull();
    expect(await commitOne(write(declared, 'secret', { ...secret, owner: '1234' }))).toBeNull();
    expect(await commitOne(write(group, 'secret', { ...secret, owner: '7' }))).toBeNull();
    expect(statSync(early)).toMatchObject({ uid: 0, gid: 0 });
    expect(statSync(declared)).toMatchObject({ uid: 1234, gid: 1234 });
    expect(statSync(group)).toMatchObject({ uid: 7, gid: 0 });
    const theirs = join(directory, 'theirs');
    mkdirSync(theirs);
    chownSync(theirs, 1234, 1234);
    chmodSync(theirs, 0o2755);
    expect(await commitOne(write(join(theirs, 'f'), 'secret', secret))).toBeNull();
    expect(statSync(join(theirs, 'f'))).toMatchObject({ uid: 0, gid: 0 });
  });

  it('replaces a symbolic link and never writes through it', async () => {
    const directory = place();
    writeFileSync(join(directory, 'target'), 'untouched');
    chmodSync(join(directory, 'target'), 0o600);
    symlinkSync('target', join(directory, 'link'));
    expect(await commitOne(write(join(directory, 'link'), 'mine'))).toBeNull();
    expect(lstatSync(join(directory, 'link')).isFile()).toBe(true);
    expect(modeOf(join(directory, 'link'))).toBe(0o644);
    expect(readFileSync(join(directory, 'target'), 'utf8')).toBe('untouched');
  });

  it('does not replace a directory, a FIFO or a device', async (context) => {
    const directory = place();
    mkdirSync(join(directory, 'd'));
    expect(await commitOne(write(join(directory, 'd'), ''))).toMatchObject({ code: 'wrong_type' });
    needs(context, succeeds('mkfifo', join(directory, 'fifo')), 'mkfifo');
    expect(await commitOne(write(join(directory, 'fifo'), ''))).toMatchObject({ code: 'wrong_type' });
    needs(context, isRoot && succeeds('mknod', join(directory, 'null'), 'c', '1', '3'), 'the right to make devices');
    expect(await commitOne(write(join(directory, 'null'), ''))).toMatchObject({ code: 'wrong_type' });
    expect(readdirSync(directory).sort()).toEqual(['d', 'fifo', 'null']);
  });

  it('says that the directory is missing', async () => {
    const directory = place();
    writeFileSync(join(directory, 'file'), '');
    expect(await commitOne(write(join(directory, 'no/f'), ''))).toEqual({
      code: 'parent_missing',
      message: `the directory ${join(directory, 'no')} does not exist`,
    });
    expect(await commitOne(write(join(directory, 'file/f'), ''))).toMatchObject({
      code: 'parent_missing',
      message: expect.stringContaining('is not a directory'),
    });
  });

  it('makes missing directories on the way when asked to, but none through a link that leads nowhere', async () => {
    const directory = place();
    symlinkSync('nowhere', join(directory, 'link'));
    const steps = ['a/b/f', 'a/b/g', 'a/c', 'link/f'].map((name) =>
      write(join(directory, name), name, { parents: true }),
    );
    expect((await host().commit(steps)).map((outcome) => outcome?.code ?? null)).toEqual([
      null,
      null,
      null,
      'apply_failed',
    ]);
    expect(readFileSync(join(directory, 'a/b/g'), 'utf8')).toBe('a/b/g');
    expect([modeOf(join(directory, 'a')), modeOf(join(directory, 'a/b'))]).toEqual([0o755, 0o755]);
    expect(look(join(directory, 'x/y/f'))).toEqual({
      type: 'absent',
      parent: 'absent',
      missing: [join(directory, 'x'), join(directory, 'x/y')],
    });
    expect(look(join(directory, 'link/f'))).toEqual({
      type: 'absent',
      parent: 'absent',
      dangling: { path: join(directory, 'link'), target: 'nowhere' },
    });
  });

  it('says which user or group there is not, and leaves nothing behind', async () => {
    const directory = place();
    const outcomes = await host().commit([
      write(join(directory, 'a'), '', { owner: 'nobody-of-that-name' }),
      write(join(directory, 'b'), '', { group: '4294967295' }),
    ]);
    expect(outcomes).toEqual([
      {
        code: 'unknown_owner',
        message: 'there is no user "nobody-of-that-name" on this machine',
      },
      {
        code: 'unknown_group',
        message: 'there is no group "4294967295" on this machine',
      },
    ]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('takes names as long as the file system does', async () => {
    const directory = place();
    for (const name of ['x'.repeat(255), 'ü'.repeat(127), `${'x'.repeat(254)}.`]) {
      expect(await commitOne(write(join(directory, name), name))).toBeNull();
      expect(readFileSync(join(directory, name), 'utf8')).toBe(name);
    }
    expect(await commitOne(write(join(directory, 'x'.repeat(256)), ''))).toMatchObject({ code: 'unsafe_path' });
    expect(readdirSync(directory)).toHaveLength(3);
  });

  it('carries out the rest of a group when one of it fails', async () => {
    const directory = place();
    const steps = Array.from({ length: 40 }, (_, index) =>
      write(join(directory, index % 4 === 0 ? 'missing' : '.', `f${index}`).replace('/./', '/'), `${index}`),
    );
    const outcomes = await host().commit(steps);
    expect(outcomes.map((outcome) => outcome?.code ?? null)).toEqual(
      steps.map((_, index) => (index % 4 === 0 ? 'parent_missing' : null)),
    );
    expect(readdirSync(directory)).toHaveLength(30);
  });

  it('takes any name that a file can have', async () => {
    const directory = place();
    const name = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 60 })
      .filter((text) => !/[/\0]|^\.\.?$|\p{Surrogate}/u.test(text) && Buffer.byteLength(text) <= 255);
    await fc.assert(
      fc.asyncProperty(name, fc.string({ unit: 'binary-ascii' }), async (text, content) => {
        expect(await commitOne(write(`${directory}/${text}`, content))).toBeNull();
        expect(look(`${directory}/${text}`)).toMatchObject({ content: { text: content } });
        expect(await commitOne({ do: 'remove-file', path: `${directory}/${text}` })).toBeNull();
      }),
      { numRuns: drawn(100) },
    );
    expect(readdirSync(directory)).toEqual([]);
  });
});

describe('make-directory', () => {
  const make = (path: string, mode = 0o755): FileStep => ({
    do: 'make-directory',
    path,
    owner: null,
    group: null,
    mode,
  });

  it('makes one level with exactly the mode', async () => {
    const directory = place();
    chmodSync(directory, 0o2755);
    expect(await commitOne(make(join(directory, 'd'), 0o1770))).toBeNull();
    expect(modeOf(join(directory, 'd'))).toBe(0o1770);
    expect(await commitOne(make(join(directory, 'a/b')))).toMatchObject({ code: 'parent_missing' });
    expect(existsSync(join(directory, 'a'))).toBe(false);
  });

  it('does not touch what is there already, and takes back what it cannot finish', async () => {
    const directory = place();
    mkdirSync(join(directory, 'd'), { mode: 0o700 });
    expect(await commitOne(make(join(directory, 'd')))).toMatchObject({ code: 'apply_failed' });
    expect(modeOf(join(directory, 'd'))).toBe(0o700);
    symlinkSync('d', join(directory, 'link'));
    expect(await commitOne(make(join(directory, 'link')))).toMatchObject({ code: 'apply_failed' });
    const step: FileStep = {
      ...make(join(directory, 'new')),
      do: 'make-directory',
      owner: 'nobody-of-that-name',
      group: null,
      path: join(directory, 'new'),
      mode: 0o755,
    };
    expect(await commitOne(step)).toMatchObject({ code: 'unknown_owner' });
    expect(existsSync(join(directory, 'new'))).toBe(false);
  });
});

describe('set-metadata', () => {
  const set = (path: string, more: Partial<Extract<FileStep, { do: 'set-metadata' }>>): FileStep => ({
    do: 'set-metadata',
    path,
    expect: 'file',
    owner: null,
    group: null,
    mode: null,
    ...more,
  });

  it('changes the mode of a file and of a directory', async () => {
    const directory = place();
    writeFileSync(join(directory, 'f'), 'x');
    chmodSync(join(directory, 'f'), 0);
    expect(await commitOne(set(join(directory, 'f'), { mode: 0o2640 }))).toBeNull();
    expect(modeOf(join(directory, 'f'))).toBe(0o2640);
    mkdirSync(join(directory, 'd'));
    expect(await commitOne(set(join(directory, 'd'), { expect: 'directory', mode: 0o3711 }))).toBeNull();
    expect(modeOf(join(directory, 'd'))).toBe(0o3711);
    expect(readFileSync(join(directory, 'f'), 'utf8')).toBe('x');
  });

  it('carries neither setuid nor setgid nor write for others over a change of owner or group', async (context) => {
    needs(context, isRoot, 'root');
    const directory = place();
    const cases = [
      [{ owner: '1234', group: '1235' }, 0o775],
      [{ owner: '1234' }, 0o755],
      [{ group: '1235' }, 0o775],
      [{ owner: '1234', mode: 0o4711 }, 0o4711],
    ] as const;
    for (const [at, [more, mode]] of cases.entries()) {
      const [file, folder] = [join(directory, `f${at}`), join(directory, `d${at}`)];
      writeFileSync(file, '');
      mkdirSync(folder);
      for (const path of [file, folder]) chmodSync(path, 0o6777);
      expect(await commitOne(set(file, more))).toBeNull();
      expect(await commitOne(set(folder, { ...more, expect: 'directory' }))).toBeNull();
      expect([modeOf(file), modeOf(folder)]).toEqual([mode, mode]);
      expect(await commitOne(write(file, 'new', { ...more, owner: '4321' }))).toBeNull();
    }
  });

  it('changes no owner of what a user could have put there, and opens nothing that another user owns', async (context) => {
    needs(context, isRoot, 'root');
    const home = join(place(), 'home');
    mkdirSync(home);
    const [own, foreign] = [join(home, 'own'), join(home, 'foreign')];
    for (const path of [own, foreign]) writeFileSync(path, 'x', { mode: 0o600 });
    chownSync(own, 1234, 1234);
    chownSync(home, 1234, 1234);
    chmodSync(join(home, '..'), 0o755);
    const unsafe = { code: 'unsafe_path' };
    expect(await commitOne(set(own, { owner: '0' }))).toMatchObject(unsafe);
    expect(await commitOne(set(own, { group: '5', mode: 0o2755 }))).toMatchObject(unsafe);
    expect(await commitOne(set(foreign, { owner: '1234' }))).toMatchObject(unsafe);
    expect(await commitOne(set(foreign, { mode: 0o644 }))).toMatchObject(unsafe);
    expect([own, foreign].map((path) => statSync(path).uid)).toEqual([1234, 0]);
    expect([modeOf(own), modeOf(foreign)]).toEqual([0o600, 0o600]);
    expect(await commitOne(set(own, { group: '5', mode: 0o640 }))).toBeNull();
    expect(await commitOne(set(foreign, { mode: 0o400 }))).toBeNull();
    expect(statSync(own)).toMatchObject({ uid: 1234, gid: 5 });
  });

  it("gives no special bit to a user's file, wherever it lies", async (context) => {
    needs(context, isRoot, 'root');
    const file = join(place(), 'f');
    writeFileSync(file, 'x');
    chownSync(file, 1234, 1234);
    expect(await commitOne(set(file, { owner: '0', mode: 0o4755 }))).toMatchObject({ code: 'unsafe_path' });
    expect(statSync(file)).toMatchObject({ uid: 1234, mode: 0o100644 });
    expect(await commitOne(set(file, { owner: '0' }))).toBeNull();
    expect(statSync(file)).toMatchObject({ uid: 0, mode: 0o100644 });
  });

  it('follows no link and changes nothing of another type', async () => {
    const directory = place();
    writeFileSync(join(directory, 'f'), '');
    chmodSync(join(directory, 'f'), 0o600);
    symlinkSync('f', join(directory, 'link'));
    expect(await commitOne(set(join(directory, 'link'), { mode: 0o777 }))).toMatchObject({ code: 'wrong_type' });
    expect(await commitOne(set(join(directory, 'f'), { expect: 'directory', mode: 0o777 }))).toMatchObject({
      code: 'wrong_type',
    });
    expect(modeOf(join(directory, 'f'))).toBe(0o600);
    expect(await commitOne(set(join(directory, 'none'), { mode: 0o777 }))).toMatchObject({ code: 'parent_missing' });
  });

  it("does not change another user's file through a hard link in an open directory", async () => {
    const directory = place();
    writeFileSync(join(directory, 'shadow'), '');
    chmodSync(join(directory, 'shadow'), 0o600);
    mkdirSync(join(directory, 'open'));
    linkSync(join(directory, 'shadow'), join(directory, 'open', 'f'));
    expect(await commitOne(set(join(directory, 'open', 'f'), { mode: 0o640 }))).toBeNull();
    chmodSync(join(directory, 'open'), 0o777);
    expect(await commitOne(set(join(directory, 'open', 'f'), { mode: 0o666 }))).toMatchObject({ code: 'unsafe_path' });
    expect(modeOf(join(directory, 'shadow'))).toBe(0o640);
  });
});

describe('removals', () => {
  it('removes files and empty directories, and is content when they are gone', async () => {
    const directory = place();
    writeFileSync(join(directory, 'f'), '');
    mkdirSync(join(directory, 'd'));
    const steps: FileStep[] = [
      { do: 'remove-file', path: join(directory, 'f') },
      { do: 'remove-directory', path: join(directory, 'd') },
    ];
    expect(await host().commit(steps)).toEqual([null, null]);
    expect(await host().commit(steps)).toEqual([null, null]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('removes neither a link nor a full directory', async () => {
    const directory = place();
    symlinkSync('nowhere', join(directory, 'link'));
    mkdirSync(join(directory, 'd'));
    writeFileSync(join(directory, 'd', 'f'), '');
    expect(
      await host().commit([
        { do: 'remove-file', path: join(directory, 'link') },
        { do: 'remove-directory', path: join(directory, 'd') },
        { do: 'remove-file', path: join(directory, 'd') },
      ]),
    ).toMatchObject([{ code: 'wrong_type' }, { code: 'apply_failed' }, { code: 'wrong_type' }]);
    expect(readlinkSync(join(directory, 'link'))).toBe('nowhere');
    expect(readdirSync(directory).sort()).toEqual(['d', 'link']);
  });
});

describe('without /proc', () => {
  it('does the same', async () => {
    const directory = place();
    const byPath = new UnixHost({ platform: 'macos', reach: reachByPath });
    writeFileSync(join(directory, 'old'), 'x');
    chmodSync(join(directory, 'old'), 0o640);
    const outcomes = await byPath.commit([
      write(join(directory, 'f'), 'new'),
      write(join(directory, 'old'), 'y'),
      { do: 'make-directory', path: join(directory, 'd'), owner: null, group: null, mode: 0o711 },
    ]);
    expect(outcomes).toEqual([null, null, null]);
    expect(readFileSync(join(directory, 'old'), 'utf8')).toBe('y');
    expect([modeOf(join(directory, 'old')), modeOf(join(directory, 'd'))]).toEqual([0o640, 0o711]);
    expect(readdirSync(directory).sort()).toEqual(['d', 'f', 'old']);
  });
});

describe('a file beside a module', () => {
  const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');
  const step = (path: string, text: string): FileStep => ({
    do: 'write-file',
    path,
    content: { source: 'files/app.bin', sha256: digestOf(text) },
    owner: null,
    group: null,
    mode: 0o750,
  });
  /** Returns a host that finds these texts on the machine. */
  function hostWith(texts: Readonly<Record<string, string>>) {
    const directory = place();
    const asked: string[] = [];
    for (const [name, text] of Object.entries(texts)) writeFileSync(join(directory, name), text);
    const bring = async ({ sha256 }: SourceFile) => {
      asked.push(sha256);
      const [name] = Object.entries(texts).find(([, text]) => digestOf(text) === sha256) ?? [];
      if (name === undefined) throw new Fault('content_unavailable', 'the orchestrator no longer has it');
      return join(directory, name);
    };
    return { host: new UnixHost({ platform: 'linux', files: { bring } }), directory, asked };
  }

  it('becomes the content, byte for byte, and is fetched once for all that take it', async () => {
    const bytes = `binary \0 ${'x'.repeat(3_000_000)}`;
    const { host, asked } = hostWith({ a: bytes });
    const [one, two] = [join(place(), 'one'), join(place(), 'two')];
    expect(await host.commit([step(one, bytes), step(two, bytes)])).toEqual([null, null]);
    for (const path of [one, two]) expect([readFileSync(path, 'utf8') === bytes, modeOf(path)]).toEqual([true, 0o750]);
    expect(asked).toHaveLength(1);
    const [have, other] = host.observe([
      { path: one, content: 'digest', entries: false },
      { path: join(one, '..'), content: 'digest', entries: false },
    ]);
    expect(have).toMatchObject({
      type: 'file',
      size: bytes.length,
      content: { kind: 'digest', sha256: digestOf(bytes) },
    });
    expect(other).toMatchObject({ type: 'directory' });
  });

  it('that does not come fails its own step alone, and leaves what is there', async () => {
    const { host } = hostWith({ a: 'here' });
    const [one, two] = [join(place(), 'one'), join(place(), 'two')];
    writeFileSync(one, 'old');
    const [first, second] = await host.commit([step(one, 'nowhere'), step(two, 'here')]);
    expect(first).toEqual({
      code: 'content_unavailable',
      message: 'the file files/app.bin of the module does not come: the orchestrator no longer has it',
    });
    expect([second, readFileSync(one, 'utf8'), readFileSync(two, 'utf8')]).toEqual([null, 'old', 'here']);
  });

  it('that changes before it is copied is refused, and the next step fetches it anew', async () => {
    const { host, directory, asked } = hostWith({ a: 'as it was' });
    const path = join(place(), 'one');
    await host.bring([{ source: 'files/app.bin', sha256: digestOf('as it was') }]);
    writeFileSync(join(directory, 'a'), 'changed');
    expect(await host.commit([step(path, 'as it was')])).toMatchObject([{ code: 'content_unavailable' }]);
    expect(existsSync(path)).toBe(false);
    writeFileSync(join(directory, 'a'), 'as it was');
    expect(await host.commit([step(path, 'as it was')])).toEqual([null]);
    expect(asked).toHaveLength(2);
  });
});
