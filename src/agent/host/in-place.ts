/** Changes other than new contents: new directories, owners and modes, removals. */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  lchownSync,
  lstatSync,
  openSync,
  rmdirSync,
  type Stats,
  unlinkSync,
} from 'node:fs';
import { Fault, systemCodeOf } from '../../kernel/fault.js';
import type { Accounts, Exposure, Metadata, Step } from '../../resources/host.js';
import { parentOf } from '../../resources/unix/unix-path.js';
import { isUnprivileged, keptMode, refusalOfTakeover } from '../../resources/unix/unix-permissions.js';
import type { AccessLists } from './attributes.js';
import { inheritedBy, isSameOwner, ownersOf, takeoverOf } from './ownership.js';
import type { HeldEntry, Reach, SafeWalk } from './safe-walk.js';
import type { Destination, Staging } from './staging.js';

type StepOf<Do extends Step['do']> = Extract<Step, { do: Do }>;

/** The location of a step: the held parent directory, and the path through it. */
export interface StepLocation {
  readonly directory: HeldEntry;
  readonly at: string;
  exposureOf(entry: Stats): Exposure;
}

const PERMISSIONS = 0o7777;
const SETGID = 0o2000;
/** Mode of directories for which no resource declares one; the setgid bit of their directory comes to it. */
const NEW_MODE = 0o755;

interface Maker {
  readonly staging: Staging;
  readonly accounts: Accounts;
}

/** Makes a directory and returns its open descriptor. */
export function makeDirectory(
  step: StepOf<'make-directory'>,
  { directory, at }: StepLocation,
  { staging, accounts }: Maker,
): number {
  const { own } = accounts;
  return makeOwned({ directory, path: step.path }, at, staging, (made) => ({
    ...ownersOf(step, inheritedBy(made, directory.stats, own), accounts),
    // The owner of the directory has chosen its setgid bit.
    mode: step.mode ?? NEW_MODE | (isUnprivileged(directory.stats.uid, own) ? 0 : made.mode & SETGID),
  }));
}

/** A parent directory that was made, open, and the directory that holds it. */
export interface MadeParent {
  readonly descriptor: number;
  readonly directory: HeldEntry;
}

/**
 * Makes a directory and its missing parents. In a directory of an unprivileged user they belong to that user, because no walk
 * leads through another user's. `keep` owns each descriptor.
 */
export function makeParents(
  path: string,
  { walk, staging, accounts }: Maker & { readonly walk: SafeWalk },
  keep: (part: MadeParent) => void,
): void {
  const place = walk.directory(path);
  if (place.kind !== 'missing' || place.what !== 'absent') return;
  makeParents(parentOf(path), { walk, staging, accounts }, keep);
  const holder = walk.directory(parentOf(path));
  if (holder.kind !== 'directory') return;
  const { held: directory } = holder;
  const at = `${directory.at}${path.slice(path.lastIndexOf('/'))}`;
  const isTheirs = isUnprivileged(directory.stats.uid, accounts.own);
  const descriptor = makeOwned({ directory, path }, at, staging, (made) => {
    const { uid, gid } = isTheirs ? directory.stats : made;
    return { uid, gid, mode: NEW_MODE | (made.mode & SETGID) };
  });
  keep({ descriptor, directory });
  walk.forget(path);
}

/** Makes a directory with owner, group and mode, and moves it to its place. Returns its descriptor. */
export function makeOwned(
  destination: Destination,
  at: string,
  staging: Staging,
  wanted: (made: Metadata) => Metadata,
): number {
  const made = staging.directory(destination, at);
  const { descriptor } = made;
  try {
    const stats = fstatSync(descriptor);
    const { uid, gid, mode } = wanted(stats);
    if (!isSameOwner(stats, { uid, gid })) fchownSync(descriptor, uid, gid);
    // Only root may move a directory that its owner cannot write to.
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) fchmodSync(descriptor, mode);
    made.moveTo(at);
    if (!isRoot) fchmodSync(descriptor, mode);
    staging.remember(stats);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
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
  machine: { readonly accounts: Accounts; readonly reach: Reach; readonly lists: AccessLists },
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
    if (exposure.exposedTo === 'others') removeForeignList(step.path, found, mode, machine.lists);
    const isGiven = !isSameOwner(stats, owners);
    if (isGiven) chownSync(found.at, owners.uid, owners.gid);
    // A change of owner clears setuid, but neither setgid of directories nor write permission for others.
    if (isGiven || step.mode !== null) chmodSync(found.at, mode);
    return openForSync(found.at);
  } finally {
    found.release();
  }
}

/** Removes an access list that another user could have chosen. */
function removeForeignList(path: string, found: HeldEntry, mode: number, lists: AccessLists): void {
  const [isListed] = lists.find([found.at]) ?? [];
  if (!isListed || lists.remove(found, mode)) return;
  throw new Fault(
    'unsafe_path',
    `another user could have chosen the access list of ${path}, and "cp" of GNU, which would remove it, fails here; remove it with: setfacl -b`,
  );
}

/**
 * Makes a link with its owner, and moves it to its place. Without a declared owner it gets that of the link that it replaces.
 * Throws `wrong_type` where something is in the way.
 */
export function makeLink(
  step: StepOf<'make-link'>,
  { directory, at }: StepLocation,
  { staging, accounts }: Maker,
): void {
  const there = lstatSync(at, { throwIfNoEntry: false });
  const isLink = there?.isSymbolicLink() === true;
  if (there !== undefined && !isLink && !(step.replace && there.isFile())) {
    throw new Fault('wrong_type', `${step.path} is no longer ${step.replace ? 'a file or a link' : 'a link'}`);
  }
  const link = staging.link({ directory, path: step.path }, step.target);
  const made = lstatSync(link.place);
  const owners = ownersOf(step, isLink ? there : inheritedBy(made, directory.stats, accounts.own), accounts);
  if (!isSameOwner(made, owners)) lchownSync(link.place, owners.uid, owners.gid);
  link.moveTo(at);
}

/** Removes what the step expects; a missing one is a success. Throws `wrong_type` for anything else. */
export function removeFile({ path, expect = 'file' }: StepOf<'remove-file'>, at: string): void {
  const stats = lstatSync(at, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const isExpected = stats.isSymbolicLink() ? expect !== 'file' : stats.isFile() && expect !== 'symlink';
  if (!isExpected)
    throw new Fault('wrong_type', `${path} is no longer a ${expect === 'symlink' ? 'link' : 'regular file'}`);
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
