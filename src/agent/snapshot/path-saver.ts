/** Saves what is at paths before an apply: contents, owners, modes, access lists and attributes, links, and absence. */
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  readSync,
  statfsSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from '../../disk/durable.js';
import { Fault, isFault, systemCodeOf } from '../../kernel/fault.js';
import { keepAttributes } from '../host/attributes.js';
import { refusalOf } from '../host/path-refusal.js';
import { bestReach, type Reach, SafeWalk } from '../host/safe-walk.js';
import { placeOf, type SavedPath } from './saved-path.js';
import { snapshotDirectory } from './snapshot-record.js';

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

export interface PathSaverOptions {
  readonly dataDir: string;
  /** Directory of the copies [default: that of the snapshot]. */
  readonly directory?: string;
  readonly reach?: Reach;
  /** Maximum bytes of all contents [default: `MAX_SNAPSHOT_BYTES`]. */
  readonly maxBytes?: number;
  /** Returns the free bytes of the file system of a directory [default: the system's]. */
  readonly freeBytes?: (directory: string) => number;
}

/** Bytes for a message: `3 MiB`. */
const mebibytes = (bytes: number): string => `${Math.ceil(bytes / 1024 ** 2)} MiB`;

export class PathSaver {
  private readonly options: PathSaverOptions;
  private readonly directory: string;
  private readonly reach: Reach;
  private readonly maxBytes: number;
  private next = 0;
  /** Bytes of all contents so far. */
  private copied = 0;

  constructor(options: PathSaverOptions) {
    this.options = options;
    this.directory = options.directory ?? snapshotDirectory(options.dataDir);
    this.reach = options.reach ?? bestReach();
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
   * Saves what is at each path; a text says why one can never be restored. Contents are on the disk when this resolves. Throws a
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
    return `${this.next}`;
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
}

interface Copying {
  readonly opened: number[];
  readonly attributes: { from: string; to: number; withMode: boolean }[];
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
