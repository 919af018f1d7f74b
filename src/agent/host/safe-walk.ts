/** Walks from the root to a directory by the rules of a root process among users it does not trust (`docs/protocols/apply.md`). */
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, type Stats } from 'node:fs';
import { resolve } from 'node:path';
import { systemCodeOf } from '../../kernel/fault.js';
import type { Exposure } from '../../resources/host.js';
import { parentOf } from '../../resources/unix/unix-path.js';
import { type Refusal, refusalOf } from './path-refusal.js';

export type Place =
  | { readonly kind: 'directory'; readonly footing: Footing }
  /** The path ends before it is through. */
  | { readonly kind: 'missing'; readonly what: 'absent' | 'not-directory' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Symbolic links on one way; the same number as the kernel's. */
const MAX_LINKS = 40;
const WRITABLE_BY_OTHERS = 0o022;
/** In such a directory only the owner of an entry can exchange it. */
const STICKY = 0o1000;

/** Directories are reached once and held until `close`. */
export class SafeWalk {
  private readonly reach: Reach;
  private readonly places = new Map<string, Place>();
  private readonly held: Footing[] = [];
  /** Those that nobody but root and this process can put another directory in the place of. */
  private readonly fixed = new WeakSet<Footing>();
  /** Directories that only root, this process and their owner can replace. */
  private readonly anchored = new WeakSet<Footing>();
  private readonly user = process.geteuid?.() ?? 0;

  constructor(reach: Reach) {
    this.reach = reach;
  }

  /** The directory at an absolute, normalised path. */
  directory(path: string): Place {
    const known = this.places.get(path);
    if (known) return known;
    const place = path === '/' ? this.root() : this.below(path);
    this.places.set(path, place);
    return place;
  }

  /** Tells which users other than root and this process could have put an entry into a directory that was reached. */
  exposureOf(directory: Footing, entry: Stats): Exposure {
    const { stats } = directory;
    if (this.fixed.has(directory) && this.isTrusted(stats)) return {};
    const isOwners = stats.uid === entry.uid && (stats.mode & WRITABLE_BY_OTHERS) === 0 && this.anchored.has(directory);
    return { exposedTo: isOwners ? 'owner' : 'others' };
  }

  /** Takes a directory that was missing for unknown again, because it has been made. */
  forget(path: string): void {
    this.places.delete(path);
  }

  /** True when nobody but root and this process can change what lies in the directory. */
  private isTrusted({ uid, mode }: Stats): boolean {
    return this.isTrustedOwner(uid) && (mode & WRITABLE_BY_OTHERS) === 0;
  }

  close(): void {
    for (const footing of this.held.splice(0)) footing.release();
    this.places.clear();
  }

  private root(): Place {
    try {
      return { kind: 'directory', footing: this.fix(this.hold('/'), '') };
    } catch (error) {
      return { kind: 'refused', refusal: refusalOf(error, 'cannot look at /', 'observe_failed') };
    }
  }

  private below(path: string): Place {
    const parent = this.directory(parentOf(path));
    if (parent.kind === 'refused') return parent;
    if (parent.kind === 'missing') return parent;
    return this.enter(parent.footing, path.slice(path.lastIndexOf('/') + 1), { path, links: MAX_LINKS });
  }

  private enter(from: Footing, name: string, way: { readonly path: string; readonly links: number }): Place {
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
        return { kind: 'directory', footing: this.fix(next, `${from.at}/${name}`) };
      }
      if (this.anchored.has(from) && this.isKeptByOwner(from.stats, next.stats)) this.anchored.add(next);
      return { kind: 'directory', footing: next };
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return { kind: 'missing', what: 'absent' };
      if (systemCodeOf(error) === 'ENOTDIR') return { kind: 'missing', what: 'not-directory' };
      return { kind: 'refused', refusal: refusalOf(error, `cannot look at ${way.path}`, 'observe_failed') };
    }
  }

  /** `/bin` and `/var/run` are links too; those that a user could have laid are not followed. */
  private follow(
    from: Footing,
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
    let place: Place = target.startsWith('/') ? this.directory('/') : { kind: 'directory', footing: from };
    for (const part of target.split('/')) {
      if (part === '' || part === '.') continue;
      if (place.kind !== 'directory') break;
      place = this.enter(place.footing, part, { path, links: links - 1 });
    }
    return place;
  }

  /** Where the whole way is beyond the reach of others, the plain path is as safe, and takes the system half the time. */
  private fix({ stats }: Footing, at: string): Footing {
    const footing: Footing = { stats, at, release() {} };
    this.fixed.add(footing);
    this.anchored.add(footing);
    return footing;
  }

  private cannotExchange(directory: Stats, entry: Stats): boolean {
    return isClosed(directory) && this.isTrustedOwner(directory.uid) && this.isTrustedOwner(entry.uid);
  }

  private isKeptByOwner(directory: Stats, entry: Stats): boolean {
    return isClosed(directory) && (this.isTrustedOwner(directory.uid) || directory.uid === entry.uid);
  }

  private hold(path: string): Footing {
    const footing = this.reach(path);
    this.held.push(footing);
    return footing;
  }

  private isTrustedOwner(uid: number): boolean {
    return uid === 0 || uid === this.user;
  }

  /** A user's directory may hold what another user wants to have changed, moved there by its owner. */
  private isForeign(from: Stats, to: Stats): boolean {
    return !this.isTrustedOwner(from.uid) && to.uid !== from.uid;
  }
}

/** True when users other than the owners of a directory and of an entry cannot exchange the entry. */
const isClosed = ({ mode }: Stats): boolean => (mode & WRITABLE_BY_OTHERS) === 0 || (mode & STICKY) !== 0;

const unsafe = (message: string): Place => ({ kind: 'refused', refusal: { code: 'unsafe_path', message } });

/** A directory or link that a walk has reached, held so that nobody can put another one in its place. */
export interface Footing {
  readonly stats: Stats;
  /** A path that leads to it and nowhere else; `${at}/name` is what lies in it. */
  readonly at: string;
  release(): void;
}

/** Reaches what is at a path without following a link at its end. Throws what the system says. */
export type Reach = (path: string) => Footing;

/** Linux: opens for nothing but being reached. Not among Node's constants; the same number on every architecture of Linux that Node runs on. */
const O_PATH = 0o10000000;

/** The directory with this process's descriptors, for itself and its children; null where there is no `/proc`. */
export function ownDescriptors(): string | null {
  try {
    // The number instead of `self` saves the system a step in each call.
    return `/proc/${readlinkSync('/proc/self')}/fd/`;
  } catch {
    return null;
  }
}

/**
 * Holds a descriptor; `/proc/PID/fd/N/name` then does what `openat` would do.
 * @param descriptors as `ownDescriptors` gives it
 */
export const reachByDescriptor =
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
 * For systems without `/proc`: looks and remembers the path. Weaker, because a directory can be exchanged between the
 * look and the use; who may write to one of the ancestors can win that race.
 */
export const reachByPath: Reach = (path) => {
  const at = resolve(path);
  return { stats: lstatSync(at), at: at === '/' ? '' : at, release() {} };
};

/** The safest way that the system offers. */
export function bestReach(): Reach {
  const descriptors = ownDescriptors();
  return descriptors === null ? reachByPath : reachByDescriptor(descriptors);
}
