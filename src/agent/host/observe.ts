/** Observes paths without following links, changing anything or blocking. */

import { isUtf8 } from 'node:buffer';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
} from 'node:fs';
import { systemCodeOf } from '../../kernel/fault.js';
import {
  type Exposure,
  type FileContent,
  type FileStamp,
  MAX_CONTENT_BYTES,
  MAX_DOWNLOAD_BYTES,
  MAX_ENTRIES,
  type Metadata,
  type ObserveRequest,
  type Ownership,
  type PathFact,
} from '../../resources/host.js';
import { parentOf, problemOfUnixPath } from '../../resources/unix/unix-path.js';
import { isUnprivileged } from '../../resources/unix/unix-permissions.js';
import { findAccessLists } from './attributes.js';
import { refusalOf } from './path-refusal.js';
import { type HeldEntry, ownDescriptors, type SafeWalk } from './safe-walk.js';
import { digestOf } from './source-files.js';
import { isVirtual } from './virtual-files.js';

/** Opens FIFOs without waiting for a writer, takes over no terminal, and fails for a link at the end. */
const LOOK = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW | constants.O_NOCTTY;
const UNREAD: FileContent = { kind: 'unread' };

/** Observes in the order of the requests. */
export function observe(walk: SafeWalk, requests: readonly ObserveRequest[], own: Ownership): readonly PathFact[] {
  const facts = observeEach(requests, (request, buffer) => observeOne(walk, request, { buffer, own }));
  const exposed = facts.flatMap((fact, at) => {
    const path = requests[at]?.path;
    if (path === undefined || !('exposedTo' in fact) || fact.exposedTo !== 'others') return [];
    const parent = walk.directory(parentOf(path));
    return parent.kind === 'directory' ? [{ at, path: placeIn(parent.held, path) }] : [];
  });
  if (exposed.length === 0) return facts;
  const lists = findAccessLists(exposed.map(({ path }) => path));
  const listed = new Set(exposed.flatMap(({ at }, index) => (lists?.[index] ? [at] : [])));
  return facts.map((fact, at) => (listed.has(at) && 'exposedTo' in fact ? { ...fact, hasForeignList: true } : fact));
}

const placeIn = ({ at }: HeldEntry, path: string): string => `${at}${path.slice(path.lastIndexOf('/'))}`;

/** Below these directories, the file systems of the kernel are mounted. */
const MAY_BE_VIRTUAL = /^\/(?:proc|sys)\//;
const SETGID = 0o2000;

/**
 * Observes each request; an error becomes an `unreadable` fact.
 * @param one must not keep `buffer`, which all requests share for contents
 */
export function observeEach(
  requests: readonly ObserveRequest[],
  one: (request: ObserveRequest, buffer: Buffer) => PathFact,
): readonly PathFact[] {
  const buffer = Buffer.allocUnsafe(MAX_CONTENT_BYTES + 1);
  return requests.map((request) => {
    try {
      return one(request, buffer);
    } catch (error) {
      const refusal = refusalOf(error, `cannot look at ${request.path}`, 'observe_failed');
      return { type: 'unreadable', ...refusal };
    }
  });
}

function observeOne(
  walk: SafeWalk,
  request: ObserveRequest,
  { buffer, own }: { readonly buffer: Buffer; readonly own: Ownership },
): PathFact {
  const { path } = request;
  const problem = problemOfUnixPath(path);
  if (problem !== null) return { type: 'unreadable', code: 'unsafe_path', message: `${path} ${problem}` };
  const parent = walk.directory(parentOf(path));
  if (parent.kind === 'missing') {
    return {
      type: 'absent',
      parent: parent.what,
      ...(parent.what === 'absent' ? missingOn(walk, parentOf(path), own) : {}),
    };
  }
  if (parent.kind === 'refused') return { type: 'unreadable', ...parent.refusal };
  const { held } = parent;
  const at = placeIn(held, path);
  const exposureOf = (stats: Stats) => walk.exposureOf(held, stats);
  // Opening some devices has side effects, so paths below /dev are only opened if they are regular files or directories.
  if (path.startsWith('/dev/') || (request.content === false && !request.entries)) {
    const fact = look(at, exposureOf);
    const isDone = !(
      (fact.type === 'file' && request.content !== false) ||
      (fact.type === 'directory' && request.entries)
    );
    if (isDone) return placed(fact, held, path, own);
  }
  return placed(open(at, request, { buffer, exposureOf }), held, path, own);
}

/** Adds what the directory means for a new file or directory. */
function placed(fact: PathFact, held: HeldEntry, path: string, own: Ownership): PathFact {
  if (fact.type !== 'absent' && fact.type !== 'file') return fact;
  const virtual = MAY_BE_VIRTUAL.test(path) && isVirtual(held) ? { isVirtual: true as const } : {};
  return fact.type === 'file' ? { ...fact, ...virtual } : { ...fact, ...virtual, ...setgidOf(held, own) };
}

/** The owner of a directory has chosen its setgid bit. */
const setgidOf = ({ stats }: HeldEntry, own: Ownership): { readonly setgid?: true } =>
  (stats.mode & SETGID) !== 0 && !isUnprivileged(stats.uid, own) ? { setgid: true } : {};

/** Returns the time and size of the object at a path; null where there is none. Never throws. */
export function stampAt(walk: SafeWalk, path: string): FileStamp | null {
  if (problemOfUnixPath(path) !== null) return null;
  try {
    const parent = walk.directory(parentOf(path));
    if (parent.kind !== 'directory') return null;
    return stampOf(lstatSync(placeIn(parent.held, path), { throwIfNoEntry: false }));
  } catch {
    return null;
  }
}

export const stampOf = (stats: Stats | undefined): FileStamp | null =>
  stats === undefined ? null : { isDirectory: stats.isDirectory(), changedAt: stats.ctimeMs, size: stats.size };

/** Returns the missing parent directories; none when another object has the name of the first. */
function missingOn(
  walk: SafeWalk,
  path: string,
  own: Ownership,
): Pick<Extract<PathFact, { type: 'absent' }>, 'missing' | 'dangling' | 'setgid'> {
  const missing: string[] = [];
  for (let at = path; ; at = parentOf(at)) {
    const place = walk.directory(at);
    if (place.kind === 'refused') return {};
    if (place.kind === 'missing') {
      missing.unshift(at);
      continue;
    }
    const [first = ''] = missing;
    const name = placeIn(place.held, first);
    const stats = lstatSync(name, { throwIfNoEntry: false });
    if (stats === undefined) return { missing, ...setgidOf(place.held, own) };
    return stats.isSymbolicLink() ? { dangling: { path: first, target: targetOf(name) } } : {};
  }
}

type ExposureOf = (stats: Stats) => Exposure;

interface Means {
  readonly buffer: Buffer;
  readonly exposureOf: ExposureOf;
}

/** Observes by opening, which saves a system call for existing files and directories. */
function open(at: string, request: ObserveRequest, { buffer, exposureOf }: Means): PathFact {
  let descriptor: number;
  try {
    descriptor = openSync(at, LOOK);
  } catch (error) {
    // A name that does not exist is absent; only for the others a second call tells what they are.
    if (systemCodeOf(error) === 'ENOENT') return { type: 'absent', parent: 'directory' };
    const fact = look(at, exposureOf);
    if (fact.type === 'file' || fact.type === 'directory') throw error;
    return fact;
  }
  try {
    const stats = fstatSync(descriptor);
    if (stats.isFile()) {
      const content = contentOf(descriptor, { size: stats.size, buffer, wanted: request.content });
      return { ...file(stats, content), ...exposureOf(stats) };
    }
    if (stats.isDirectory()) {
      return { ...directory(stats, request.entries ? entriesOf(at, descriptor) : null), ...exposureOf(stats) };
    }
    return other(stats);
  } finally {
    closeSync(descriptor);
  }
}

function look(at: string, exposureOf: ExposureOf): PathFact {
  const stats = lstatSync(at, { throwIfNoEntry: false });
  if (!stats) return { type: 'absent', parent: 'directory' };
  if (stats.isFile()) return { ...file(stats, UNREAD), ...exposureOf(stats) };
  if (stats.isDirectory()) return { ...directory(stats, null), ...exposureOf(stats) };
  if (!stats.isSymbolicLink()) return other(stats);
  return { type: 'symlink', target: targetOf(at), owner: { uid: stats.uid, gid: stats.gid } };
}

function targetOf(at: string): string {
  try {
    return readlinkSync(at);
  } catch (error) {
    if (systemCodeOf(error) === 'EINVAL' || systemCodeOf(error) === 'ENOENT') return '(changing)';
    throw error;
  }
}

interface Reading {
  /** Bytes. */
  readonly size: number;
  readonly buffer: Buffer;
  readonly wanted: ObserveRequest['content'];
}

/** Reads the wanted part of the content of an open file. */
export function contentOf(descriptor: number, { size, buffer, wanted }: Reading): FileContent {
  if (wanted === false) return UNREAD;
  if (wanted === 'digest') {
    const sha256 = size > MAX_DOWNLOAD_BYTES ? null : digestOf(descriptor, buffer);
    return sha256 === null ? { kind: 'too-large' } : { kind: 'digest', sha256 };
  }
  if (size > MAX_CONTENT_BYTES) return { kind: 'too-large' };
  let length = 0;
  // Files of /proc and /sys hold more than their size says.
  for (;;) {
    const read = readSync(descriptor, buffer, length, buffer.length - length, null);
    length += read;
    if (length > MAX_CONTENT_BYTES) return { kind: 'too-large' };
    if (read === 0 || (length === size && size > 0)) break;
  }
  const bytes = buffer.subarray(0, length);
  return isUtf8(bytes) ? { kind: 'text', text: bytes.toString('utf8') } : { kind: 'binary' };
}

/** Lists the open directory where the system allows it, because its path could lead elsewhere by now. */
function entriesOf(at: string, descriptor: number): readonly string[] | null {
  const descriptors = ownDescriptors();
  return namesIn(descriptors === null ? at : `${descriptors}${descriptor}`);
}

/** Returns the sorted names in a directory; null when there are more than `MAX_ENTRIES`. */
export function namesIn(path: string): readonly string[] | null {
  const directory = opendirSync(path);
  try {
    const names: string[] = [];
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      if (names.length === MAX_ENTRIES) return null;
      names.push(entry.name);
    }
    return names.sort();
  } finally {
    directory.closeSync();
  }
}

const metadataOf = ({ uid, gid, mode }: Stats): Metadata => ({ uid, gid, mode: mode & 0o7777 });

const file = (stats: Stats, content: FileContent): Extract<PathFact, { type: 'file' }> => ({
  type: 'file',
  size: stats.size,
  content,
  ...metadataOf(stats),
});

const directory = (stats: Stats, entries: readonly string[] | null): Extract<PathFact, { type: 'directory' }> => ({
  type: 'directory',
  entries,
  ...metadataOf(stats),
});

function other(stats: Stats): PathFact {
  if (stats.isFIFO()) return { type: 'other', what: 'fifo' };
  if (stats.isSocket()) return { type: 'other', what: 'socket' };
  if (stats.isBlockDevice()) return { type: 'other', what: 'block device' };
  return { type: 'other', what: stats.isCharacterDevice() ? 'character device' : 'unknown' };
}
