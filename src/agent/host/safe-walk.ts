/** Walks from the root to a directory by the rules of a root process among users it does not trust (`docs/protocols/apply.md`). */
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, type Stats } from 'node:fs';
import { resolve } from 'node:path';
import { systemCodeOf } from '../../kernel/fault.js';
import type { Exposure } from '../../resources/host.js';
import { parentOf } from '../../resources/unix/unix-path.js';
import { refusalOf, type WalkFailure } from './path-refusal.js';

type Place = { readonly kind: 'directory'; readonly held: HeldEntry } | WalkFailure;

/** Maximum symbolic links on one path, as in the kernel. */
const MAX_LINKS = 40;
const WRITABLE_BY_OTHERS = 0o022;
/** Sticky bit: only the owner of an entry can replace it. */
const STICKY = 0o1000;

/** A walk that reaches each directory once and holds it until `close`. */
export class SafeWalk {
  private readonly reach: Reach;
  private readonly places = new Map<string, Place>();
  private readonly held: HeldEntry[] = [];
  /** Directories that only root and this process can replace. */
  private readonly fixed = new WeakSet<HeldEntry>();
  /** Directories that only root, this process and their owner can replace. */
  private readonly anchored = new WeakSet<HeldEntry>();
  private readonly user = process.geteuid?.() ?? 0;

  constructor(reach: Reach) {
    this.reach = reach;
  }

  /** Returns the directory at an absolute, normalised path. */
  directory(path: string): Place {
    const known = this.places.get(path);
    if (known) return known;
    const place = path === '/' ? this.root() : this.below(path);
    this.places.set(path, place);
    return place;
  }

  /** Returns which users other than root and this process could have put an entry into a reached directory. */
  exposureOf(directory: HeldEntry, entry: Stats): Exposure {
    const { stats } = directory;
    if (this.fixed.has(directory) && this.isTrusted(stats)) return {};
    const isOwners = stats.uid === entry.uid && (stats.mode & WRITABLE_BY_OTHERS) === 0 && this.anchored.has(directory);
    return { exposedTo: isOwners ? 'owner' : 'others' };
  }

  /** True for a reached directory that only root and this process can exchange, and whose owner is one of them. */
  isTrustedDirectory(directory: HeldEntry): boolean {
    return this.fixed.has(directory) && this.isTrustedOwner(directory.stats.uid);
  }

  /** Forgets a path that was missing and has been made. */
  forget(path: string): void {
    this.places.delete(path);
  }

  /** True when only root and this process can change the entries of the directory. */
  private isTrusted({ uid, mode }: Stats): boolean {
    return this.isTrustedOwner(uid) && (mode & WRITABLE_BY_OTHERS) === 0;
  }

  close(): void {
    for (const held of this.held.splice(0)) held.release();
    this.places.clear();
  }

  private root(): Place {
    try {
      return { kind: 'directory', held: this.withPlainPath(this.hold('/'), '') };
    } catch (error) {
      return { kind: 'refused', refusal: refusalOf(error, 'cannot look at /', 'observe_failed') };
    }
  }

  private below(path: string): Place {
    const parent = this.directory(parentOf(path));
    if (parent.kind === 'refused') return parent;
    if (parent.kind === 'missing') return parent;
    return this.enter(parent.held, path.slice(path.lastIndexOf('/') + 1), { path, links: MAX_LINKS });
  }

  private enter(from: HeldEntry, name: string, way: { readonly path: string; readonly links: number }): Place {
    try {
      const next = this.hold(`${from.at}/${name}`);
      if (next.stats.isSymbolicLink()) return this.follow(from, name, next.stats, way);
      if (!next.stats.isDirectory()) return { kind: 'missing', what: 'not-directory' };
      if (this.isForeign(from.stats, next.stats)) {
        return unsafe(
          `${way.path} leads through a directory of user ${from.stats.uid} into one of user ${next.stats.uid}`,
        );
      }
      if (this.fixed.has(from) && this.cannotExchange(from.stats, next.stats)) {
        return { kind: 'directory', held: this.withPlainPath(next, `${from.at}/${name}`) };
      }
      if (this.anchored.has(from) && this.isKeptByOwner(from.stats, next.stats)) this.anchored.add(next);
      return { kind: 'directory', held: next };
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return { kind: 'missing', what: 'absent' };
      if (systemCodeOf(error) === 'ENOTDIR') return { kind: 'missing', what: 'not-directory' };
      return { kind: 'refused', refusal: refusalOf(error, `cannot look at ${way.path}`, 'observe_failed') };
    }
  }

  /** Follows a link such as `/bin` or `/var/run`; refuses links that an unprivileged user could have made. */
  private follow(
    from: HeldEntry,
    name: string,
    link: Stats,
    way: { readonly path: string; readonly links: number },
  ): Place {
    const { path, links } = way;
    if (!this.isTrustedOwner(link.uid) || !this.isTrusted(from.stats)) {
      return unsafe(`${path} leads through a symbolic link that users other than root could have made`);
    }
    if (links === 0) return unsafe(`${path} leads through too many symbolic links`);
    const target = readlinkSync(`${from.at}/${name}`);
    let place: Place = target.startsWith('/') ? this.directory('/') : { kind: 'directory', held: from };
    for (const part of target.split('/')) {
      if (part === '' || part === '.') continue;
      if (place.kind !== 'directory') break;
      place = this.enter(place.held, part, { path, links: links - 1 });
    }
    return place;
  }

  /** Uses the plain path where no other user can change any part of it: as safe, and twice as fast. */
  private withPlainPath({ stats }: HeldEntry, at: string): HeldEntry {
    const held: HeldEntry = { stats, at, release() {} };
    this.fixed.add(held);
    this.anchored.add(held);
    return held;
  }

  private cannotExchange(directory: Stats, entry: Stats): boolean {
    return isClosed(directory) && this.isTrustedOwner(directory.uid) && this.isTrustedOwner(entry.uid);
  }

  private isKeptByOwner(directory: Stats, entry: Stats): boolean {
    return isClosed(directory) && (this.isTrustedOwner(directory.uid) || directory.uid === entry.uid);
  }

  private hold(path: string): HeldEntry {
    const held = this.reach(path);
    this.held.push(held);
    return held;
  }

  private isTrustedOwner(uid: number): boolean {
    return uid === 0 || uid === this.user;
  }

  /** True for a directory of one user inside of another user's, who could have moved it there to have it changed. */
  private isForeign(from: Stats, to: Stats): boolean {
    return !this.isTrustedOwner(from.uid) && to.uid !== from.uid;
  }
}

/** True when only the owners of a directory and of an entry can replace the entry. */
const isClosed = ({ mode }: Stats): boolean => (mode & WRITABLE_BY_OTHERS) === 0 || (mode & STICKY) !== 0;

const unsafe = (message: string): Place => ({ kind: 'refused', refusal: { code: 'unsafe_path', message } });

/** A file system entry that a walk has reached, held so that it cannot be exchanged for another. */
export interface HeldEntry {
  readonly stats: Stats;
  /** A path that leads to this entry only; `${at}/name` is an entry in it. */
  readonly at: string;
  release(): void;
}

/** Reaches the entry at a path without following a link at its end. Throws the system's error. */
export type Reach = (path: string) => HeldEntry;

/** Linux's O_PATH, which Node's constants lack; the same number on every architecture that Node supports. */
const O_PATH = 0o10000000;

/** Returns the directory of this process's descriptors, usable by its children too; null without `/proc`. */
export function ownDescriptors(): string | null {
  try {
    // The number instead of `self` saves a lookup in each call.
    return `/proc/${readlinkSync('/proc/self')}/fd/`;
  } catch {
    return null;
  }
}

/**
 * Holds an entry by a descriptor; `/proc/PID/fd/N/name` then works like `openat`.
 * @param descriptors the result of `ownDescriptors`
 */
const reachByDescriptor =
  (descriptors: string): Reach =>
  (path) => {
    const descriptor = openSync(path, O_PATH | constants.O_NOFOLLOW);
    try {
      const stats = fstatSync(descriptor);
      return { stats, at: `${descriptors}${descriptor}`, release: () => closeSync(descriptor) };
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
  };

/**
 * Remembers the path, for systems without `/proc`. This is weaker: a user with write access to an ancestor can exchange the
 * entry between the check and the use.
 */
export const reachByPath: Reach = (path) => {
  const at = resolve(path);
  return { stats: lstatSync(at), at: at === '/' ? '' : at, release() {} };
};

/** Returns the safest way that the system offers. */
export function bestReach(): Reach {
  const descriptors = ownDescriptors();
  return descriptors === null ? reachByPath : reachByDescriptor(descriptors);
}
