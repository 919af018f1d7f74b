/** A directory or link that a walk has reached, held so that nobody can put another one in its place. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, type Stats } from 'node:fs';
import { resolve } from 'node:path';

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
