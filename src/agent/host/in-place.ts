/** Changes without a temporary file: new directories, owners and modes, removals. */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from 'node:fs';
import { Fault, systemCodeOf } from '../../kernel/fault.js';
import type { Accounts, Exposure, Ownership, Step } from '../../resources/host.js';
import { parentOf } from '../../resources/unix/unix-path.js';
import { isUnprivileged, keptMode, refusalOfTakeover } from '../../resources/unix/unix-permissions.js';
import { isSameOwner, ownersOf, takeoverOf } from './ownership.js';
import type { HeldEntry, Reach, SafeWalk } from './safe-walk.js';

type StepOf<Do extends Step['do']> = Extract<Step, { do: Do }>;

/** The location of a step: the held parent directory, and the path through it. */
export interface StepLocation {
  readonly directory: HeldEntry;
  readonly at: string;
  exposureOf(entry: Stats): Exposure;
}

const PERMISSIONS = 0o7777;
const OPEN_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Makes a directory and returns its open descriptor. */
export const makeDirectory = (step: StepOf<'make-directory'>, { at }: StepLocation, accounts: Accounts): number =>
  makeOwned({ path: step.path, at, mode: step.mode }, (made) => ownersOf(step, made, accounts));

/** A parent directory that was made, open, and the directory that holds it. */
export interface MadeParent {
  readonly descriptor: number;
  readonly directory: HeldEntry;
}

/** Mode of parent directories that no resource declares. */
const WAY_MODE = 0o755;

/**
 * Makes a directory and its missing parents. In a directory of an unprivileged user they belong to that user, because no walk
 * leads through another user's. `keep` owns each descriptor.
 */
export function makeParents(
  path: string,
  { walk, accounts }: { readonly walk: SafeWalk; readonly accounts: Accounts },
  keep: (part: MadeParent) => void,
): void {
  const place = walk.directory(path);
  if (place.kind !== 'missing' || place.what !== 'absent') return;
  makeParents(parentOf(path), { walk, accounts }, keep);
  const holder = walk.directory(parentOf(path));
  if (holder.kind !== 'directory') return;
  const { held: directory } = holder;
  const at = `${directory.at}${path.slice(path.lastIndexOf('/'))}`;
  const isTheirs = isUnprivileged(directory.stats.uid, accounts.own);
  const descriptor = makeOwned({ path, at, mode: WAY_MODE }, (made) => (isTheirs ? directory.stats : made));
  keep({ descriptor, directory });
  walk.forget(path);
}

interface NewDirectory {
  readonly path: string;
  readonly at: string;
  readonly mode: number;
}

function makeOwned({ path, at, mode }: NewDirectory, ownersFor: (made: Ownership) => Ownership): number {
  mkdirSync(at, 0o700);
  let descriptor: number | null = null;
  try {
    descriptor = openSync(at, OPEN_DIRECTORY);
    const stats = fstatSync(descriptor);
    if (process.geteuid !== undefined && stats.uid !== process.geteuid()) {
      throw new Fault('unsafe_path', `${path} was exchanged for another directory as soon as it was made`);
    }
    const owners = ownersFor(stats);
    if (!isSameOwner(stats, owners)) fchownSync(descriptor, owners.uid, owners.gid);
    fchmodSync(descriptor, mode);
    return descriptor;
  } catch (error) {
    if (descriptor !== null) closeSync(descriptor);
    removeEmpty(at);
    throw error;
  }
}

/**
 * Sets owner and group, then the mode; returns an open descriptor, or null without the right to open it. Throws `unsafe_path`
 * where an unprivileged user would gain rights by it.
 */
export function setMetadata(
  step: StepOf<'set-metadata'>,
  spot: StepLocation,
  machine: { readonly accounts: Accounts; readonly reach: Reach },
): number | null {
  const found = machine.reach(spot.at);
  try {
    const { stats } = found;
    requireKind(step, stats);
    const exposure = spot.exposureOf(stats);
    if (stats.isFile() && stats.nlink > 1 && exposure.exposedTo !== undefined) {
      const message = `${step.path} has other names too, in a directory where users other than root can link files`;
      throw new Fault('unsafe_path', message);
    }
    const owners = ownersOf(step, stats, machine.accounts);
    const mode = step.mode ?? keptMode(stats.mode, takeoverOf(step, stats, owners));
    const there = { ...exposure, uid: stats.uid, gid: stats.gid, mode: stats.mode & PERMISSIONS };
    const refusal = refusalOfTakeover(there, { ...step, after: { ...owners, mode } }, machine.accounts.own);
    if (refusal !== null) throw new Fault('unsafe_path', refusal);
    const isGiven = !isSameOwner(stats, owners);
    if (isGiven) chownSync(found.at, owners.uid, owners.gid);
    // A change of owner clears setuid, but neither setgid of directories nor write permission for others.
    if (isGiven || step.mode !== null) chmodSync(found.at, mode);
    return openForSync(found.at);
  } finally {
    found.release();
  }
}

/** Removes a file; a missing one is a success. Throws `wrong_type` for anything else. */
export function removeFile(path: string, at: string): void {
  const stats = lstatSync(at, { throwIfNoEntry: false });
  if (stats === undefined) return;
  if (!stats.isFile()) throw new Fault('wrong_type', `${path} is no longer a regular file`);
  unlinkSync(at);
}

/** Removes an empty directory; a missing one is a success. */
export function removeDirectory(at: string): void {
  try {
    rmdirSync(at);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  }
}

function requireKind({ path, expect }: StepOf<'set-metadata'>, stats: Stats): void {
  if (expect === 'file' ? stats.isFile() : stats.isDirectory()) return;
  throw new Fault('wrong_type', `${path} is no longer a ${expect === 'file' ? 'regular file' : 'directory'}`);
}

function openForSync(at: string): number | null {
  try {
    return openSync(at, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    // The owner may change a file without the right to read it; the sync of its directory must suffice.
    return null;
  }
}

function removeEmpty(at: string): void {
  try {
    rmdirSync(at);
  } catch {
    // A directory that was exchanged or filled in the meantime stays.
  }
}
