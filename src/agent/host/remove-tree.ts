/** Removes a directory with everything in it, among users who may exchange its entries meanwhile. */
import { lstatSync, readdirSync, realpathSync, rmdirSync, unlinkSync } from 'node:fs';
import { Fault, systemCodeOf } from '../../kernel/fault.js';
import { Mounts, mountInside } from './mounts.js';
import type { HeldEntry, Reach } from './safe-walk.js';

/** Maximum entries that one step removes, because nothing else is done meanwhile; the next apply removes the rest. */
const MAX_ENTRIES = 50_000;
/** Maximum depth, because each level is held open. */
const MAX_DEPTH = 256;

interface Removing {
  readonly reach: Reach;
  /** Path for messages. */
  readonly path: string;
  /** File system of the tree. */
  readonly device: number;
  left: number;
}

/**
 * Removes the tree at `at`; a missing one is a success. Links are removed and not followed. Throws the Faults `wrong_type` for
 * anything but a directory, and `removal_refused` for a mount inside, which is found before anything is removed, and for a
 * tree that is too large or too deep.
 */
export function removeTree(path: string, at: string, reach: Reach): void {
  if (lstatSync(at, { throwIfNoEntry: false }) === undefined) return;
  const root = reach(at);
  try {
    if (!root.stats.isDirectory()) throw new Fault('wrong_type', `${path} is no longer a directory`);
    const mounted = Mounts.read().within(realpathSync(root.at));
    if (mounted !== null) throw new Fault('removal_refused', mountInside(mounted, path));
    empty(root, 0, { reach, path, device: root.stats.dev, left: MAX_ENTRIES });
    rmdirSync(at);
  } finally {
    root.release();
  }
}

function empty(directory: HeldEntry, depth: number, removing: Removing): void {
  const { reach, path, device } = removing;
  if (depth > MAX_DEPTH) throw new Fault('removal_refused', `${path} has more than ${MAX_DEPTH} levels of directories`);
  for (const name of readdirSync(`${directory.at}/.`)) {
    removing.left -= 1;
    if (removing.left < 0) {
      const message = `${path} held more than ${MAX_ENTRIES} entries, and so many are removed; apply again to remove the rest`;
      throw new Fault('removal_refused', message);
    }
    const at = `${directory.at}/${name}`;
    const stats = lstatSync(at, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    if (!stats.isDirectory()) {
      forgiving(() => unlinkSync(at));
      continue;
    }
    const inner = reach(at);
    try {
      if (inner.stats.dev !== device) throw new Fault('removal_refused', mountInside('a directory in it', path));
      // A link that has come into its place is removed by the next apply.
      if (inner.stats.isDirectory()) empty(inner, depth + 1, removing);
    } finally {
      inner.release();
    }
    forgiving(() => rmdirSync(at));
  }
}

/** Lets pass that an entry has gone meanwhile. */
function forgiving(remove: () => void): void {
  try {
    remove();
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
  }
}
