/** The file that a backup is to become: what may stand there already, and how it gets its name. */
import {
  chmodSync,
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import * as Type from 'typebox';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { closed } from '../../src/kernel/schema.js';

export interface BackupTarget {
  /** Absolute. */
  readonly file: string;
  /** Take the place of a file of that name. */
  readonly force: boolean;
}

/** Throws `usage` for a place that is taken or is no place for a backup, `store_unavailable` for one that is not there. */
export function checkTarget({ file, force }: BackupTarget, dataDir: string): void {
  if (!isAbsolute(file)) throw new Fault('usage', `${file} is no absolute path`);
  if (directoryOf(file) === realpathSync(dataDir)) {
    throw new Fault('usage', `${file} is in the data directory itself`, {
      hint: 'a backup beside the store is lost together with it: choose another directory, best on another machine',
    });
  }
  const there = lstatSync(file, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (!there.isFile()) throw new Fault('usage', `${file} is there already, and is no regular file`);
  if (!force) {
    throw new Fault('usage', `${file} is there already`, { hint: 'choose another name, or replace it with --force' });
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
 * An empty directory beside the target that nobody else can look into or plant something in, whoever may write around it.
 * What a backup that was cut off has left there goes.
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

/** Gives the finished copy its name; it is there over a power cut when this returns. */
export function putInPlace(copy: string, file: string): void {
  try {
    chmodSync(copy, 0o600);
    renameSync(copy, file);
    syncPath(join(file, '..'));
  } catch (cause) {
    throw notWritable(file, cause);
  }
}

/** For whatever the disk or the rights do not let. */
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

/** What there is to say of a backup that was made, as it goes over the control socket. */
export const BackupReportSchema = closed({
  file: Type.String(),
  bytes: Type.Integer(),
  sha256: Type.String(),
  schema: Type.Integer(),
  /** Number of the last audit event in it, and its hash; 0 and '' when there is none. */
  last_seq: Type.Integer(),
  last_hash: Type.String(),
  /** Paths of key files that belong to it and are not in it. */
  keys: Type.Array(Type.String()),
});
export type BackupReport = Type.Static<typeof BackupReportSchema>;

/** Brings a file, or the names in a directory, to the disk. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
