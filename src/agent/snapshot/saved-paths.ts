/** Saves what is at paths, and puts it back: contents, owners, modes, access lists and attributes, links, and absence. */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  futimesSync,
  lchownSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  rmdirSync,
  type Stats,
  statfsSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from '../../disk/durable.js';
import { Fault, isFault, systemCodeOf } from '../../kernel/fault.js';
import type { Exposure } from '../../resources/host.js';
import { parentOf, problemOfUnixPath } from '../../resources/unix/unix-path.js';
import { refusalOfTakeover } from '../../resources/unix/unix-permissions.js';
import { AccessLists, keepAttributes } from '../host/attributes.js';
import type { HeldPrograms } from '../host/held-programs.js';
import { makeOwned } from '../host/in-place.js';
import { refusalOf } from '../host/path-refusal.js';
import { bestReach, type HeldEntry, type Reach, SafeWalk } from '../host/safe-walk.js';
import { ScriptDirectories } from '../host/script-directory.js';
import { Staging } from '../host/staging.js';
import { Temporaries } from '../host/temporaries.js';
import { readOwnFile, snapshotDirectory } from './snapshot-record.js';

interface Owned {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** What was at a path. */
export type SavedPath =
  /** `missing`: parent directories that were absent too, outermost first. */
  | { readonly type: 'absent'; readonly path: string; readonly missing: readonly string[] }
  /** `blob` names the file of the snapshot with the content; `${blob}.attributes` has its access list and attributes. */
  | ({ readonly type: 'file'; readonly path: string; readonly blob: string; readonly mtime: number } & Owned)
  | ({ readonly type: 'directory'; readonly path: string } & Owned)
  | {
      readonly type: 'symlink';
      readonly path: string;
      readonly target: string;
      readonly uid: number;
      readonly gid: number;
    };

/** Maximum bytes of all contents in one snapshot. */
const MAX_SNAPSHOT_BYTES = 256 * 1024 ** 2;
/** Bytes that stay free on the disk of the data directory. */
const RESERVE = 16 * 1024 ** 2;

const LOOK = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const CREATE = constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | constants.O_NOFOLLOW;
const CHUNK = 256 * 1024;
/** Files that are open at the same time, so that one program copies the attributes of many. */
const BATCH = 100;
const NEITHER = 'it is neither a file nor a directory';

export interface SavedPathsOptions {
  readonly dataDir: string;
  /** Prefix of the names of contents, which no other saving of the snapshot has. */
  readonly prefix?: string;
  readonly reach?: Reach;
  readonly held?: HeldPrograms | undefined;
  /** Maximum bytes of all contents [default: `MAX_SNAPSHOT_BYTES`]. */
  readonly maxBytes?: number;
  /** Returns the free bytes of the file system of a directory [default: the system's]. */
  readonly freeBytes?: (directory: string) => number;
}

/** Bytes for a message: `3 MiB`. */
const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2)} MiB`;

export class SavedPaths {
  private readonly options: SavedPathsOptions;
  private readonly directory: string;
  private readonly reach: Reach;
  private readonly temporaries = new Temporaries();
  private readonly lists: AccessLists;
  private readonly maxBytes: number;
  private next = 0;
  /** Bytes of all contents so far. */
  private copied = 0;

  constructor(options: SavedPathsOptions) {
    this.options = options;
    this.directory = snapshotDirectory(options.dataDir);
    this.reach = options.reach ?? bestReach();
    this.lists = new AccessLists(new ScriptDirectories(options.dataDir), options.held);
    this.maxBytes = options.maxBytes ?? MAX_SNAPSHOT_BYTES;
  }

  /**
   * Throws `disk_full` unless the disk has room for the contents of the files at these paths, and `apply_failed` when they are
   * larger than a snapshot may be. Copies nothing.
   */
  requireRoom(paths: readonly string[]): void {
    const needed = this.walking((walk) => paths.reduce((sum, path) => sum + sizeAt(walk, path), 0));
    const all = this.copied + needed;
    if (all > this.maxBytes) {
      const limit = `a snapshot holds at most ${mebibytes(this.maxBytes)}`;
      const consequence = this.copied === 0 ? 'nothing was changed' : 'the last of them were not changed';
      throw new Fault(
        'apply_failed',
        `the files that the apply replaces have ${mebibytes(all)}, and ${limit}, so ${consequence}`,
      );
    }
    const free = (this.options.freeBytes ?? freeBytesOf)(this.options.dataDir);
    if (free >= needed + RESERVE) return;
    throw new Fault(
      'disk_full',
      `there is no room in ${this.options.dataDir} for what the apply replaces: it takes ${mebibytes(needed + RESERVE)}, and ${mebibytes(free)} are free, so nothing was changed`,
    );
  }

  /**
   * Saves what is at each path; a text says why one can never be put back. Contents are on the disk when this resolves. Throws a
   * Fault for an error of the system, so that nothing is changed that was to be saved.
   */
  async save(paths: readonly string[]): Promise<readonly (SavedPath | string)[]> {
    const saved: (SavedPath | string)[] = [];
    for (let from = 0; from < paths.length; from += BATCH) {
      saved.push(...(await this.saveBatch(paths.slice(from, from + BATCH))));
    }
    return saved;
  }

  private async saveBatch(paths: readonly string[]): Promise<readonly (SavedPath | string)[]> {
    const walk = new SafeWalk(this.reach);
    const copying: Copying = { opened: [], attributes: [] };
    try {
      const saved = paths.map((path) => {
        try {
          return this.saveOne(walk, path, copying);
        } catch (error) {
          throw faultOfSaving(path, error);
        }
      });
      await keepAttributes(copying.attributes);
      for (const { to } of copying.attributes) fsyncSync(to);
      if (copying.attributes.length > 0) syncDirectory(this.directory);
      return saved;
    } finally {
      for (const descriptor of copying.opened) closeSync(descriptor);
      walk.close();
    }
  }

  /** Puts one path back; returns null, or why it could not be put back. */
  async putBack(saved: SavedPath): Promise<string | null> {
    const { reach, temporaries, lists } = this;
    const walk = new SafeWalk(reach);
    const staging = new Staging({ walk, reach, temporaries, lists });
    try {
      return await this.putBackOne({ walk, staging }, saved);
    } catch (error) {
      return refusalOf(error, `cannot put ${saved.path} back`).message;
    } finally {
      staging.clear();
      walk.close();
    }
  }

  private walking<T>(work: (walk: SafeWalk) => T): T {
    const walk = new SafeWalk(this.reach);
    try {
      return work(walk);
    } finally {
      walk.close();
    }
  }

  private saveOne(walk: SafeWalk, path: string, { opened, attributes }: Copying): SavedPath | string {
    const found = placeOf(walk, path);
    if ('reason' in found) return found.reason;
    if ('missing' in found) return { type: 'absent', path, missing: found.missing };
    const { at } = found;
    const stats = lstatSync(at, { throwIfNoEntry: false });
    if (stats === undefined) return { type: 'absent', path, missing: [] };
    const { uid, gid } = stats;
    const mode = stats.mode & 0o7777;
    if (stats.isDirectory()) return { type: 'directory', path, uid, gid, mode };
    if (stats.isSymbolicLink()) return { type: 'symlink', path, target: readlinkSync(at), uid, gid };
    if (!stats.isFile()) return NEITHER;
    const source = openSync(at, LOOK);
    opened.push(source);
    const held = fstatSync(source);
    if (!held.isFile()) return NEITHER;
    const blob = this.name();
    this.copy(path, source, blob);
    const to = openSync(join(this.directory, `${blob}.attributes`), CREATE, 0o600);
    opened.push(to);
    attributes.push({ from: `/proc/${process.pid}/fd/${source}`, to, withMode: true });
    return {
      type: 'file',
      path,
      blob,
      mtime: held.mtimeMs / 1000,
      uid: held.uid,
      gid: held.gid,
      mode: held.mode & 0o7777,
    };
  }

  private name(): string {
    this.next += 1;
    return `${this.options.prefix ?? ''}${this.next}`;
  }

  /** Copies a content durably. Throws `apply_failed` when it has become larger than what is left for the snapshot. */
  private copy(path: string, from: number, blob: string): void {
    const to = openSync(join(this.directory, blob), CREATE, 0o600);
    try {
      const buffer = Buffer.allocUnsafe(CHUNK);
      for (;;) {
        const length = readSync(from, buffer);
        if (length === 0) break;
        this.copied += length;
        if (this.copied > this.maxBytes) {
          const limit = `a snapshot holds at most ${mebibytes(this.maxBytes)}`;
          throw new Fault('apply_failed', `${path} cannot be saved: it grew while it was saved, and ${limit}`);
        }
        for (let at = 0; at < length; ) at += writeSync(to, buffer, at, length - at);
      }
      fsyncSync(to);
    } finally {
      closeSync(to);
    }
  }

  private async putBackOne({ walk, staging }: Way, saved: SavedPath): Promise<string | null> {
    const { path } = saved;
    const found = placeOf(walk, path);
    if ('reason' in found) return found.reason;
    if ('held' in found) this.temporaries.removeDead(found.held);
    if (saved.type === 'absent') return 'missing' in found ? null : this.remove(walk, saved, found);
    if ('missing' in found) return `its directory ${found.missing[0] ?? ''} no longer exists`;
    const { at, held } = found;
    const present = lstatSync(at, { throwIfNoEntry: false });
    const destination = { directory: held, path };
    if (saved.type === 'directory') {
      // The apply may have put a file in the place of the directory.
      if (present?.isFile()) unlinkSync(at);
      else if (present !== undefined) return this.putBackAttributesOf(saved, found, walk);
      const { uid, gid, mode } = saved;
      closeSynced(makeOwned(destination, at, staging, () => ({ uid, gid, mode })));
    } else {
      // The entries of a directory that the apply has put there went before it.
      if (present?.isDirectory()) rmdirSync(at);
      if (saved.type === 'symlink') {
        if (present?.isSymbolicLink() && readlinkSync(at) === saved.target) return null;
        const link = staging.link(destination, saved.target);
        lchownSync(link.place, saved.uid, saved.gid);
        link.moveTo(at);
      } else if (!(await this.putBackFile(saved, found, { walk, staging }, present))) return null;
    }
    staging.clear();
    syncHeld(held);
    return null;
  }

  private remove(
    walk: SafeWalk,
    { path, missing }: Extract<SavedPath, { type: 'absent' }>,
    { at, held }: Found,
  ): string | null {
    const present = lstatSync(at, { throwIfNoEntry: false });
    if (present?.isDirectory()) {
      const made = walk.directory(path);
      if (made.kind === 'directory') this.temporaries.removeDead(made.held);
      try {
        rmdirSync(at);
      } catch (error) {
        if (systemCodeOf(error) === 'ENOTEMPTY') return 'the directory was made by the apply and is not empty now';
        throw error;
      }
    } else if (present !== undefined) unlinkSync(at);
    syncHeld(held);
    for (const directory of missing.toReversed()) {
      const place = placeOf(walk, directory);
      if (!('at' in place)) continue;
      try {
        rmdirSync(place.at);
        syncHeld(place.held);
      } catch {
        // Something else is in it by now.
        break;
      }
    }
    return null;
  }

  /** Refuses a directory that an unprivileged user could have put there, by the rules of an apply. */
  private putBackAttributesOf(
    { path, uid, gid, mode }: Extract<SavedPath, { type: 'directory' }>,
    { at, held }: Found,
    walk: SafeWalk,
  ): string | null {
    const directory = this.reach(at);
    try {
      const { stats } = directory;
      if (!stats.isDirectory()) return 'something else has taken the place of the directory';
      const there = { ...walk.exposureOf(held, stats), uid: stats.uid, gid: stats.gid, mode: stats.mode & 0o7777 };
      const own = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
      const refusal = refusalOfTakeover(there, { path, expect: 'directory', after: { uid, gid, mode } }, own);
      if (refusal !== null) return refusal;
      const isGiven = stats.uid !== uid || stats.gid !== gid;
      if (isGiven) chownSync(directory.at, uid, gid);
      if (isGiven || (stats.mode & 0o7777) !== mode) chmodSync(directory.at, mode);
      syncHeld(directory);
      return null;
    } finally {
      directory.release();
    }
  }

  /** Returns false for a file that the apply has not changed. */
  private async putBackFile(
    saved: Extract<SavedPath, { type: 'file' }>,
    { at, held }: Found,
    { walk, staging }: Way,
    present: Stats | undefined,
  ): Promise<boolean> {
    const content = readOwnFile(join(this.directory, saved.blob));
    if (present?.isFile() && isSame(saved, content, at, present)) return false;
    try {
      const file = staging.file({ directory: held, path: saved.path });
      await this.fill(file.descriptor, saved, content);
      file.moveTo(at);
    } catch (error) {
      if (!isFull(error) || present === undefined) throw error;
      const descriptor = openToOverwrite(at, walk.exposureOf(held, present));
      if (descriptor === null) throw error;
      try {
        await this.fill(descriptor, saved, content);
      } finally {
        closeSync(descriptor);
      }
    }
    return true;
  }

  /** Writes content, owner, access list, mode and time durably. */
  private async fill(
    to: number,
    { blob, uid, gid, mode, mtime }: Extract<SavedPath, { type: 'file' }>,
    content: Buffer,
  ): Promise<void> {
    for (let at = 0; at < content.length; ) at += writeSync(to, content, at, content.length - at, at);
    fchownSync(to, uid, gid);
    const from = openSync(join(this.directory, `${blob}.attributes`), LOOK);
    try {
      fchmodSync(to, mode);
      await keepAttributes([{ from: `/proc/${process.pid}/fd/${from}`, to, withMode: true }], this.options.held);
    } finally {
      closeSync(from);
    }
    if ((fstatSync(to).mode & 0o7777) !== mode) fchmodSync(to, mode);
    futimesSync(to, mtime, mtime);
    fsyncSync(to);
  }
}

interface Way {
  readonly walk: SafeWalk;
  readonly staging: Staging;
}

const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(systemCodeOf(error) ?? '');

/**
 * Opens and empties the file that the apply has put there, on a disk that has no room for another one. The snapshot keeps the
 * content until all of it is written. Null where another user could have put the file there, or it has other names.
 */
function openToOverwrite(at: string, { exposedTo }: Exposure): number | null {
  if (exposedTo !== undefined) return null;
  const descriptor = openSync(at, constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  const stats = fstatSync(descriptor);
  if (stats.isFile() && stats.nlink === 1) {
    ftruncateSync(descriptor);
    return descriptor;
  }
  closeSync(descriptor);
  return null;
}

function closeSynced(descriptor: number): void {
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

interface Copying {
  readonly opened: number[];
  readonly attributes: { from: string; to: number; withMode: boolean }[];
}

interface Found {
  readonly held: HeldEntry;
  readonly at: string;
}

/** Reaches the directory of a path by the rules of an apply. */
function placeOf(
  walk: SafeWalk,
  path: string,
): Found | { readonly missing: readonly string[] } | { readonly reason: string } {
  const problem = problemOfUnixPath(path);
  if (problem !== null) return { reason: `${path} ${problem}` };
  const missing: string[] = [];
  for (let directory = parentOf(path); ; directory = parentOf(directory)) {
    const place = walk.directory(directory);
    if (place.kind === 'refused') {
      const { code, message } = place.refusal;
      // The rules forbid the path, or the system has failed.
      if (code === 'observe_failed') throw new Fault(code, message);
      return { reason: message };
    }
    if (place.kind === 'directory') {
      if (missing.length > 0) return { missing };
      return { held: place.held, at: `${place.held.at}${path.slice(path.lastIndexOf('/'))}` };
    }
    // A file that is to make way for directories is as good as missing.
    missing.unshift(directory);
  }
}

function sizeAt(walk: SafeWalk, path: string): number {
  const found = placeOf(walk, path);
  const stats = 'at' in found ? lstatSync(found.at, { throwIfNoEntry: false }) : undefined;
  return stats?.isFile() ? stats.size : 0;
}

function freeBytesOf(directory: string): number {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize;
}

function faultOfSaving(path: string, error: unknown): Fault {
  if (isFault(error)) return error;
  if (['ENOSPC', 'EDQUOT'].includes(systemCodeOf(error) ?? '')) {
    return new Fault('disk_full', `the snapshot of ${path} cannot be written: the disk is full`, { cause: error });
  }
  const { code, message } = refusalOf(error, `cannot save ${path}`);
  return new Fault(code, message, { cause: error });
}

/** True for a file that the apply has not changed. */
function isSame(saved: Extract<SavedPath, { type: 'file' }>, content: Buffer, at: string, present: Stats): boolean {
  const { uid, gid, mode } = saved;
  if (present.uid !== uid || present.gid !== gid || (present.mode & 0o7777) !== mode || present.size !== content.length)
    return false;
  const descriptor = openSync(at, LOOK);
  try {
    const now = Buffer.allocUnsafe(content.length + 1);
    let length = 0;
    for (;;) {
      const read = readSync(descriptor, now, length, now.length - length, null);
      if (read === 0) break;
      length += read;
    }
    return length === content.length && now.subarray(0, length).equals(content);
  } finally {
    closeSync(descriptor);
  }
}

function syncHeld({ at }: HeldEntry): void {
  try {
    syncDirectory(`${at}/.`);
  } catch (error) {
    // A directory that may be written but not listed cannot be synced.
    if (systemCodeOf(error) !== 'EACCES') throw error;
  }
}
