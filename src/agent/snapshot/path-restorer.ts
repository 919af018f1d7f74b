/** Restores what was at a path before an apply: contents, owners, modes, access lists and attributes, links, and absence. */
import {
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
  unlinkSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { syncDirectory } from '../../disk/durable.js';
import { systemCodeOf } from '../../kernel/fault.js';
import type { Accounts, Exposure } from '../../resources/host.js';
import { AccessLists, keepAttributes } from '../host/attributes.js';
import type { HeldPrograms } from '../host/held-programs.js';
import { makeOwned, setMetadata } from '../host/in-place.js';
import { refusalOf } from '../host/path-refusal.js';
import { bestReach, type HeldEntry, type Reach, SafeWalk } from '../host/safe-walk.js';
import { ScriptDirectories } from '../host/script-directory.js';
import { Staging } from '../host/staging.js';
import { Temporaries } from '../host/temporaries.js';
import { type Found, placeOf, type SavedPath } from './saved-path.js';
import { readOwnFile, snapshotDirectory } from './snapshot-record.js';

export interface PathRestorerOptions {
  readonly dataDir: string;
  /** Directory of the copies [default: that of the snapshot]. */
  readonly directory?: string;
  readonly held?: HeldPrograms | undefined;
}

const LOOK = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** The owners of a saved path are numbers, whose names may have gone since. */
const BY_NUMBER: Accounts = {
  uid: Number,
  gid: Number,
  loginGroup: () => undefined,
  userName: String,
  groupName: String,
  own: { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 },
};

export class PathRestorer {
  private readonly directory: string;
  private readonly held: HeldPrograms | undefined;
  private readonly reach: Reach = bestReach();
  private readonly temporaries = new Temporaries();
  private readonly lists: AccessLists;

  constructor({ dataDir, directory, held }: PathRestorerOptions) {
    this.directory = directory ?? snapshotDirectory(dataDir);
    this.held = held;
    this.lists = new AccessLists(new ScriptDirectories(dataDir), held);
  }

  /** Restores one path; returns null, or why it could not be restored. */
  async restore(saved: SavedPath): Promise<string | null> {
    const { reach, temporaries, lists } = this;
    const walk = new SafeWalk(reach);
    const staging = new Staging({ walk, reach, temporaries, lists });
    try {
      return await this.restoreThrough({ walk, staging }, saved);
    } catch (error) {
      return refusalOf(error, `cannot restore ${saved.path}`).message;
    } finally {
      staging.clear();
      walk.close();
    }
  }

  private async restoreThrough({ walk, staging }: Way, saved: SavedPath): Promise<string | null> {
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
      else if (present !== undefined) return this.restoreMetadata(saved, found, walk);
      const { uid, gid, mode } = saved;
      closeSynced(makeOwned(destination, at, staging, () => ({ uid, gid, mode })));
    } else {
      // The entries of a directory that the apply has put there went before it.
      if (present?.isDirectory()) rmdirSync(at);
      if (saved.type === 'symlink') {
        const isOwners = present?.uid === saved.uid && present.gid === saved.gid;
        if (isOwners && present.isSymbolicLink() && readlinkSync(at) === saved.target) return null;
        const link = staging.link(destination, saved.target);
        lchownSync(link.place, saved.uid, saved.gid);
        link.moveTo(at);
      } else if (!(await this.restoreFile(saved, found, { walk, staging }, present))) return null;
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

  private restoreMetadata(
    { path, uid, gid, mode }: Extract<SavedPath, { type: 'directory' }>,
    { at, held }: Found,
    walk: SafeWalk,
  ): null {
    const present = lstatSync(at);
    const isSame = present.uid === uid && present.gid === gid && (present.mode & 0o7777) === mode;
    if (isSame && present.isDirectory()) {
      // An earlier attempt may have died between the change and its sync.
      syncHeld({ at });
      return null;
    }
    const step = { do: 'set-metadata', path, expect: 'directory', owner: `${uid}`, group: `${gid}`, mode } as const;
    const spot = { directory: held, at, exposureOf: (entry: Stats) => walk.exposureOf(held, entry) };
    const changed = setMetadata(step, spot, { accounts: BY_NUMBER, reach: this.reach, lists: this.lists });
    if (changed !== null) closeSynced(changed);
    return null;
  }

  /** Returns false for a file that the apply has not changed. */
  private async restoreFile(
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
      await keepAttributes([{ from: `/proc/${process.pid}/fd/${from}`, to, withMode: true }], this.held);
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

function syncHeld({ at }: Pick<HeldEntry, 'at'>): void {
  try {
    syncDirectory(`${at}/.`);
  } catch (error) {
    // A directory that may be written but not listed cannot be synced.
    if (systemCodeOf(error) !== 'EACCES') throw error;
  }
}
