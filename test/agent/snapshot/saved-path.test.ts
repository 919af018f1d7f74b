/** Paths that are saved and restored in real directories. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bestReach } from '../../../src/agent/host/safe-walk.js';
import { PathRestorer } from '../../../src/agent/snapshot/path-restorer.js';
import { PathSaver } from '../../../src/agent/snapshot/path-saver.js';
import type { SavedPath } from '../../../src/agent/snapshot/saved-path.js';
import { makeSnapshotDirectory, snapshotDirectory } from '../../../src/agent/snapshot/snapshot-record.js';
import { isRoot, needs, place } from '../../support/agent.js';

async function save(...paths: readonly string[]) {
  const dataDir = place();
  makeSnapshotDirectory(dataDir);
  const saved = await new PathSaver({ dataDir }).save(paths);
  return {
    dataDir,
    saved,
    restore: async () => {
      const reasons: (string | null)[] = [];
      // Another process restores it, from JSON alone.
      const known = JSON.parse(JSON.stringify(saved)) as readonly (SavedPath | string)[];
      for (const one of known.toReversed())
        reasons.push(typeof one === 'string' ? one : await new PathRestorer({ dataDir }).restore(one));
      return reasons.toReversed();
    },
  };
}

const modeOf = (path: string): number => lstatSync(path).mode & 0o7777;

describe('a saved path', () => {
  it('returns with content, mode and time, even when it was replaced or deleted', async () => {
    const root = place();
    const [replaced, deleted] = [join(root, 'replaced'), join(root, 'deleted')];
    const bytes = Buffer.from([0, 255, 10, 13, 128]);
    for (const path of [replaced, deleted]) {
      writeFileSync(path, bytes);
      chmodSync(path, 0o4751);
    }
    const { mtimeMs } = statSync(replaced);
    const { restore } = await save(replaced, deleted);
    rmSync(deleted);
    writeFileSync(replaced, 'another');
    chmodSync(replaced, 0o600);
    expect(await restore()).toEqual([null, null]);
    for (const path of [replaced, deleted]) {
      expect(readFileSync(path)).toEqual(bytes);
      expect(modeOf(path)).toBe(0o4751);
    }
    expect(Math.round(statSync(replaced).mtimeMs)).toBe(Math.round(mtimeMs));
    expect(readdirSync(root).sort()).toEqual(['deleted', 'replaced']);
  });

  it('returns as a file in the place of a directory with what the apply put in it, and the other way round', async () => {
    const root = place();
    const [file, directory] = [join(root, 'file'), join(root, 'directory')];
    writeFileSync(file, 'x');
    mkdirSync(directory, { mode: 0o751 });
    writeFileSync(join(directory, 'y'), 'y');
    const { restore } = await save(file, join(file, 'a/new'), join(directory, 'y'), directory);
    rmSync(file);
    mkdirSync(join(file, 'a'), { recursive: true });
    writeFileSync(join(file, 'a/new'), '');
    rmSync(directory, { recursive: true });
    writeFileSync(directory, 'now a file');
    expect(await restore()).toEqual([null, null, null, null]);
    expect(readFileSync(file, 'utf8')).toBe('x');
    expect(modeOf(directory)).toBe(0o751);
    expect(readFileSync(join(directory, 'y'), 'utf8')).toBe('y');
  });

  it('returns to its owner and group', async (context) => {
    needs(context, isRoot, 'root');
    const path = join(place(), 'owned');
    writeFileSync(path, 'x');
    chownSync(path, 1234, 2345);
    const { restore } = await save(path);
    writeFileSync(path, 'y');
    chownSync(path, 0, 0);
    expect(await restore()).toEqual([null]);
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 2345 });
    expect(readFileSync(path, 'utf8')).toBe('x');
  });

  it('keeps its access list and attributes', async (context) => {
    const path = join(place(), 'listed');
    writeFileSync(path, 'x');
    const isSet = spawnSync('setfacl', ['-m', 'u:1234:r', path]).status === 0;
    needs(context, isSet, 'setfacl and a file system with access lists');
    const list = () => spawnSync('getfacl', ['-n', '--absolute-names', path], { encoding: 'utf8' }).stdout;
    const before = list();
    const { restore } = await save(path);
    rmSync(path);
    writeFileSync(path, 'y');
    expect(await restore()).toEqual([null]);
    expect(list()).toBe(before);
  });

  it('is absent again, with the directories that were made for it', async () => {
    const root = place();
    const [shallow, deep] = [join(root, 'new'), join(root, 'a/b/new')];
    const { saved, restore } = await save(shallow, deep);
    expect(saved[1]).toMatchObject({ type: 'absent', missing: [join(root, 'a'), join(root, 'a/b')] });
    mkdirSync(join(root, 'a/b'), { recursive: true });
    for (const path of [shallow, deep]) writeFileSync(path, 'x');
    expect(await restore()).toEqual([null, null]);
    expect(readdirSync(root)).toEqual([]);
  });

  it('leaves a directory in which something else is by now, and says so', async () => {
    const root = place();
    const made = join(root, 'made');
    const { restore } = await save(made);
    mkdirSync(made);
    writeFileSync(join(made, 'theirs'), 'x');
    expect(await restore()).toEqual(['the directory was made by the apply and is not empty now']);
    expect(existsSync(join(made, 'theirs'))).toBe(true);
  });

  it('is a link or a directory again', async () => {
    const root = place();
    const [link, directory] = [join(root, 'link'), join(root, 'directory')];
    symlinkSync('/nowhere', link);
    mkdirSync(directory, { mode: 0o750 });
    chmodSync(directory, 0o2750);
    const { restore } = await save(link, directory);
    rmSync(link);
    writeFileSync(link, 'a file');
    rmSync(directory, { recursive: true });
    expect(await restore()).toEqual([null, null]);
    expect(readlinkSync(link)).toBe('/nowhere');
    expect(modeOf(directory)).toBe(0o2750);
  });

  it('is not written again when the apply has not changed it', async () => {
    const path = join(place(), 'same');
    writeFileSync(path, 'x');
    const { ino } = statSync(path);
    const { restore } = await save(path);
    expect(await restore()).toEqual([null]);
    expect(statSync(path).ino).toBe(ino);
  });

  it('is never written through a link that took the place of its directory', async () => {
    const root = place();
    const [directory, elsewhere] = [join(root, 'directory'), join(root, 'elsewhere')];
    mkdirSync(directory);
    mkdirSync(elsewhere);
    chmodSync(root, 0o777);
    writeFileSync(join(directory, 'file'), 'x');
    const { restore } = await save(join(directory, 'file'));
    rmSync(directory, { recursive: true });
    symlinkSync(elsewhere, directory);
    expect((await restore())[0]).toContain('symbolic link');
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it('is private in the snapshot', async () => {
    const path = join(place(), 'secret');
    writeFileSync(path, 'x', { mode: 0o644 });
    const { dataDir } = await save(path);
    const directory = snapshotDirectory(dataDir);
    expect(modeOf(directory)).toBe(0o700);
    expect(modeOf(join(directory, '1'))).toBe(0o600);
  });

  it('is not saved when it is neither file nor directory', async (context) => {
    const path = join(place(), 'pipe');
    needs(context, spawnSync('mkfifo', [path]).status === 0, 'mkfifo');
    expect((await save(path)).saved).toEqual(['it is neither a file nor a directory']);
  });
});

describe('a directory of an unprivileged user', () => {
  const USER = 1234;

  function theirs(): string {
    const directory = join(place(), 'theirs');
    mkdirSync(directory);
    chownSync(directory, USER, USER);
    return directory;
  }

  it('does not give them a directory that they have moved into the place of theirs', async (context) => {
    needs(context, isRoot, 'root');
    const directory = join(theirs(), 'd');
    mkdirSync(directory);
    chownSync(directory, USER, USER);
    const { restore } = await save(directory);
    rmSync(directory, { recursive: true });
    mkdirSync(directory, { mode: 0o700 });
    expect((await restore())[0]).toMatch(/an unprivileged user could have put .* there/);
    expect(statSync(directory)).toMatchObject({ uid: 0, gid: 0 });
    expect(modeOf(directory)).toBe(0o700);
  });

  it('is theirs again where only root could have changed it', async (context) => {
    needs(context, isRoot, 'root');
    const [kept, removed] = [join(place(), 'kept'), join(place(), 'removed')];
    for (const directory of [kept, removed]) {
      mkdirSync(directory);
      chownSync(directory, USER, USER);
      chmodSync(directory, 0o2750);
    }
    const { restore } = await save(kept, removed);
    chownSync(kept, 0, 0);
    chmodSync(kept, 0o700);
    rmSync(removed, { recursive: true });
    expect(await restore()).toEqual([null, null]);
    for (const directory of [kept, removed]) {
      expect(statSync(directory)).toMatchObject({ uid: USER, gid: USER });
      expect(modeOf(directory)).toBe(0o2750);
    }
  });

  it('gets its link back, and the target of the link keeps its owner', async (context) => {
    needs(context, isRoot, 'root');
    const target = join(place(), 'target');
    writeFileSync(target, 'x');
    const link = join(theirs(), 'link');
    symlinkSync(target, link);
    lchownSync(link, USER, 2345);
    const { restore } = await save(link);
    rmSync(link);
    expect(await restore()).toEqual([null]);
    expect(readlinkSync(link)).toBe(target);
    expect(lstatSync(link)).toMatchObject({ uid: USER, gid: 2345 });
    expect(statSync(target)).toMatchObject({ uid: 0, gid: 0 });
  });
});

describe('the room for a snapshot', () => {
  it('is asked for before anything is copied', () => {
    const dataDir = place();
    const path = join(place(), 'large');
    writeFileSync(path, Buffer.alloc(1024 * 1024));
    const paths = new PathSaver({ dataDir, freeBytes: () => 16.5 * 1024 ** 2 });
    expect(() => paths.requireRoom([path])).toThrow(
      /no room in .* it takes 17 MiB, and 17 MiB are free, so nothing was changed/,
    );
    expect(() => paths.requireRoom([join(path, '..', 'absent')])).not.toThrow();
  });

  it('has a limit of its own', () => {
    const root = place();
    const path = join(root, 'huge');
    writeFileSync(path, '');
    spawnSync('truncate', ['-s', '300M', path]);
    expect(() => new PathSaver({ dataDir: place() }).requireRoom([path])).toThrow(/at most 256 MiB/);
  });

  it('counts what was saved before, and stops at a file that grows', async () => {
    const dataDir = place();
    makeSnapshotDirectory(dataDir);
    const [first, second] = [join(place(), 'first'), join(place(), 'second')];
    for (const path of [first, second]) writeFileSync(path, Buffer.alloc(600 * 1024));
    const paths = new PathSaver({ dataDir, maxBytes: 1024 ** 2 });
    paths.requireRoom([first]);
    await paths.save([first]);
    expect(() => paths.requireRoom([second])).toThrow(/replaces have 2 MiB, and a snapshot holds at most 1 MiB/);
    await expect(paths.save([second])).rejects.toThrow(/second cannot be saved: it grew while it was saved/);
  });

  it('keeps an apply from changing what the system does not let it save', async () => {
    const path = join(place(), 'f');
    writeFileSync(path, 'x');
    const dataDir = place();
    // The directory of the snapshot does not exist.
    await expect(new PathSaver({ dataDir }).save([path])).rejects.toThrow(/cannot save .*ENOENT/);
    // Reading it is an error of the system, even for root.
    makeSnapshotDirectory(dataDir);
    await expect(new PathSaver({ dataDir }).save([path, '/proc/self/mem'])).rejects.toThrow(
      /cannot save \/proc\/self\/mem: .*EIO/,
    );
  });

  it('holds many files, a part of them open at a time', async () => {
    const root = place();
    const paths = Array.from({ length: 250 }, (_, number) => join(root, String(number)));
    for (const path of paths) writeFileSync(path, path);
    let most = 0;
    const dataDir = place();
    makeSnapshotDirectory(dataDir);
    const reach = bestReach();
    const counting = (path: string) => {
      most = Math.max(most, readdirSync('/proc/self/fd').length);
      return reach(path);
    };
    const before = readdirSync('/proc/self/fd').length;
    const saved = await new PathSaver({ dataDir, reach: counting }).save(paths);
    expect(readdirSync('/proc/self/fd').length).toBe(before);
    expect(most).toBeLessThan(before + 250);
    for (const path of paths) writeFileSync(path, 'another');
    for (const one of saved) if (typeof one === 'object') await new PathRestorer({ dataDir }).restore(one);
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual(paths);
  });

  it('does not care for other names of a file', async () => {
    const root = place();
    writeFileSync(join(root, 'one'), 'x');
    linkSync(join(root, 'one'), join(root, 'two'));
    const { restore } = await save(join(root, 'one'));
    writeFileSync(join(root, 'one'), 'y');
    expect(await restore()).toEqual([null]);
    expect(readFileSync(join(root, 'two'), 'utf8')).toBe('y');
  });
});
