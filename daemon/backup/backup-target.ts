/** Checks the target file of a backup and moves the finished copy into place. */
import { chmodSync, lstatSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { dirname, isAbsolute } from 'node:path';
import * as Type from 'typebox';
import { renameDurably } from '../../src/disk/durable.js';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { closed } from '../../src/kernel/schema.js';

export interface BackupTarget {
  /** Absolute path. */
  readonly file: string;
  /** True to replace an existing file. */
  readonly force: boolean;
}

/** Throws `usage` for a target that exists or is unsuitable, `store_unavailable` for a missing directory. */
export function checkTarget({ file, force }: BackupTarget, dataDir: string): void {
  if (!isAbsolute(file)) throw new Fault('usage', `${file} is no absolute path`);
  if (directoryOf(file) === realpathSync(dataDir)) {
    throw new Fault('usage', `${file} is in the data directory itself`, {
      hint: 'a backup beside the store is lost together with it: choose another directory, best on another machine',
    });
  }
  const there = lstatSync(file, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (!there.isFile()) throw new Fault('usage', `${file} exists already and is not a regular file`);
  if (!force) {
    throw new Fault('usage', `${file} exists already`, { hint: 'choose another name, or replace it with --force' });
  }
}

function directoryOf(file: string): string {
  try {
    return realpathSync(dirname(file));
  } catch (cause) {
    throw notWritable(file, cause);
  }
}

/**
 * Creates an empty directory beside the target and returns its path. Only this user can read or write in it, even if
 * others can write to its parent. Removes the remains of an interrupted backup.
 * Throws `usage` when another file is in the way, `store_unavailable`.
 */
export function makeWorkplace(file: string): string {
  const path = `${file}.partial`;
  try {
    const there = lstatSync(path, { throwIfNoEntry: false });
    if (there?.isDirectory() && there.uid === process.geteuid?.()) rmSync(path, { recursive: true });
    mkdirSync(path, { mode: 0o700 });
    return path;
  } catch (cause) {
    if (systemCodeOf(cause) === 'EEXIST') {
      throw new Fault('usage', `${path} is in the way`, {
        hint: 'it is not from a backup that was cut off: move it away',
      });
    }
    throw notWritable(file, cause);
  }
}

/** Renames the finished copy to its target. The rename is durable when this returns. Throws `store_unavailable`. */
export function putInPlace(copy: string, file: string): void {
  try {
    chmodSync(copy, 0o600);
    renameDurably(copy, file);
  } catch (cause) {
    throw notWritable(file, cause);
  }
}

/** Returns the fault `store_unavailable` for an error of the disk or of permissions. */
export function notWritable(file: string, cause: unknown): Fault {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'its directory does not exist',
    ENOTDIR: 'its directory is none',
    EACCES: 'the user who runs orch serve may not write there',
    EPERM: 'the user who runs orch serve may not write there',
    EROFS: 'the file system is read-only',
    ENOSPC: 'the disk there is full',
    SQLITE_FULL: 'the disk there is full',
  };
  const reason = reasons[systemCodeOf(cause) ?? ''] ?? messageOf(cause);
  return new Fault('store_unavailable', `the backup ${file} cannot be written: ${reason}`, {
    hint: 'choose a place that is writable and has room; what is at the place is as it was',
    cause,
  });
}

/** Report of a finished backup, as sent over the control socket. */
export const BackupReportSchema = closed({
  file: Type.String(),
  bytes: Type.Integer(),
  sha256: Type.String(),
  schema: Type.Integer(),
  /** Number and hash of the last audit event in the backup; 0 and '' without one. */
  last_seq: Type.Integer(),
  last_hash: Type.String(),
  /** Paths of the key files that a restore needs and that the backup does not contain. */
  keys: Type.Array(Type.String()),
});
export type BackupReport = Type.Static<typeof BackupReportSchema>;
