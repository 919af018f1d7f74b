/** Careful file access: private files that only their owner may read, and bounded reads of files from other people. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { createFile, syncDirectory } from '../disk/durable.js';
import { Fault, messageOf, shellWord, systemCodeOf } from '../kernel/fault.js';
import { asOwnerOf } from './as-owner.js';

/** Maximum size of a private file in bytes; keys, certificates and pins are far smaller. */
const MAX_SIZE = 256 * 1024;

interface ReadOptions {
  /** Accepts a file of another user, for an import by root. */
  readonly anyOwner?: boolean;
}

/**
 * Returns the text of a private file. Throws `key_unreadable` (the cause has the system's code), `key_permissions` when
 * another user owns it or the group or others have access, `key_invalid` when it is too large or no regular file.
 */
export function readPrivateFile(path: string, { anyOwner = false }: ReadOptions = {}): string {
  try {
    const descriptor = openSync(path, READ);
    try {
      requirePrivate(path, fstatSync(descriptor), anyOwner);
      return readFileSync(descriptor, 'utf8');
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    throw error instanceof Fault ? error : unreadable(path, error);
  }
}

/**
 * Creates a file of mode 0600, atomically and durably. Throws `key_exists` for an existing file, which stays unchanged,
 * and `key_unwritable` when the disk or directory refuses it. For root the file becomes that of the directory's owner.
 */
export function createPrivateFile(path: string, content: string): void {
  asOwnerOf(path, () => createDurably(path, content));
}

function createDurably(path: string, content: string): void {
  const directory = dirname(resolve(path));
  const temporary = join(directory, `.${basename(path)}.${randomBytes(8).toString('hex')}.new`);
  try {
    createFile(temporary, content, 0o600);
    linkSync(temporary, path);
    rmSync(temporary);
    syncDirectory(directory);
  } catch (error) {
    throw notCreated(path, error);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function requirePrivate(path: string, stats: Stats, anyOwner: boolean): void {
  if (!stats.isFile()) throw new Fault('key_invalid', `${path} is not a regular file`);
  if (stats.size > MAX_SIZE) throw new Fault('key_invalid', `${path} is far too large for a key`);
  const user = process.geteuid?.();
  // Windows has neither owners nor modes of this kind.
  if (user === undefined) return;
  const word = shellWord(path);
  if (stats.uid !== user && !anyOwner) {
    throw new Fault('key_permissions', `${path} belongs to user ${stats.uid}, not to user ${user} who runs this`, {
      // In its owner's own directory the file is not root's to take, as with sudo that keeps HOME.
      hint: isOwnersPlace(path, stats)
        ? 'run this as that user; if it is you: without sudo, or with the home directory of root (sudo -H)'
        : `if the file is yours: chown ${user} ${word} && chmod 600 ${word}`,
    });
  }
  if ((stats.mode & 0o077) !== 0) {
    const mode = (stats.mode & 0o7777).toString(8).padStart(4, '0');
    throw new Fault('key_permissions', `${path} has mode ${mode}, so other users can read or change it`, {
      hint: `chmod 600 ${word} (and replace the key if another user may have read it)`,
    });
  }
}

const isOwnersPlace = (path: string, { uid }: Stats): boolean =>
  statSync(dirname(resolve(path)), { throwIfNoEntry: false })?.uid === uid;

function unreadable(path: string, cause: unknown): Fault {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'does not exist',
    EACCES: 'may not be read by this user',
    ELOOP: 'is a circle of symbolic links',
  };
  const reason = reasons[systemCodeOf(cause) ?? ''] ?? `cannot be read: ${messageOf(cause)}`;
  return new Fault('key_unreadable', `${path} ${reason}`, { cause });
}

function notCreated(path: string, cause: unknown): Fault {
  if (systemCodeOf(cause) === 'EEXIST') {
    return new Fault('key_exists', `${path} is already there and is not overwritten`, {
      hint: `move it away first if you want a new one: mv ${shellWord(path)} ${shellWord(`${path}.old`)}`,
      cause,
    });
  }
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'its directory does not exist',
    EACCES: 'this user may not write to its directory',
    EROFS: 'the file system is read-only',
    ENOSPC: 'the disk is full',
  };
  const reason = reasons[systemCodeOf(cause) ?? ''] ?? messageOf(cause);
  return new Fault('key_unwritable', `${path} cannot be created: ${reason}`, { cause });
}

/** O_NONBLOCK, because opening a pipe without a writer would block for ever. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Reads a regular file and follows links. Throws the system's error, or an error for another file type or size. */
export function readRegularFile(path: string, maxBytes: number): Buffer {
  const descriptor = openSync(path, READ);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile())
      throw new Error(`it is ${stats.isDirectory() ? 'a directory' : 'a pipe or a device'}, not a file`);
    if (stats.size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    return readBounded(descriptor, maxBytes);
  } finally {
    closeSync(descriptor);
  }
}

/** Counts the bytes itself, because a file may grow while it is read and files in /proc report no size. */
function readBounded(descriptor: number, maxBytes: number): Buffer {
  const parts: Buffer[] = [];
  for (let length = 0; length <= maxBytes; ) {
    const part = Buffer.allocUnsafe(64 * 1024);
    const count = readSync(descriptor, part);
    if (count === 0) return Buffer.concat(parts);
    parts.push(part.subarray(0, count));
    length += count;
  }
  throw new Error(`it is larger than ${maxBytes} bytes`);
}
