/** The former content of a path, and how a snapshot reaches its directory. */
import { Fault } from '../../kernel/fault.js';
import { parentOf, problemOfUnixPath } from '../../resources/unix/unix-path.js';
import type { HeldEntry, SafeWalk } from '../host/safe-walk.js';

interface Owned {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** JSON, so that another process can restore it. */
export type SavedPath =
  /** `missing`: parent directories that were absent too, outermost first. */
  | { readonly type: 'absent'; readonly path: string; readonly missing: readonly string[] }
  /** `blob` names the file of the snapshot with the content; `${blob}.attributes` has its access list and attributes. */
  | ({ readonly type: 'file'; readonly path: string; readonly blob: string; readonly mtime: number } & Owned)
  | ({ readonly type: 'directory'; readonly path: string } & Owned)
  | {
      readonly type: 'symlink';
      readonly path: string;
      readonly target: string;
      readonly uid: number;
      readonly gid: number;
    };

/** A directory that was reached, and the path through it. */
export interface Found {
  readonly held: HeldEntry;
  readonly at: string;
}

/** Reaches the directory of a path by the rules of an apply. */
export function placeOf(
  walk: SafeWalk,
  path: string,
): Found | { readonly missing: readonly string[] } | { readonly reason: string } {
  const problem = problemOfUnixPath(path);
  if (problem !== null) return { reason: `${path} ${problem}` };
  const missing: string[] = [];
  for (let directory = parentOf(path); ; directory = parentOf(directory)) {
    const place = walk.directory(directory);
    if (place.kind === 'refused') {
      const { code, message } = place.refusal;
      // The rules forbid the path, or the system has failed.
      if (code === 'observe_failed') throw new Fault(code, message);
      return { reason: message };
    }
    if (place.kind === 'directory') {
      if (missing.length > 0) return { missing };
      return { held: place.held, at: `${place.held.at}${path.slice(path.lastIndexOf('/'))}` };
    }
    // A file that is to make way for directories is as good as missing.
    missing.unshift(directory);
  }
}
