/**
 * Walks from the root of a drive to a directory on Windows. Directories cannot be held by descriptors, so an observed one could
 * be exchanged before its use. Therefore links and junctions are refused.
 */
import { lstatSync, type Stats } from 'node:fs';
import { systemCodeOf } from '../../kernel/fault.js';
import { parentOfWindowsPath } from '../../resources/windows/windows-path.js';
import { refusalOf, type WalkFailure } from './path-refusal.js';

/** Maps a path of a module to a path of this system. */
export type ToNative = (path: string) => string;

type WindowsPlace = { readonly kind: 'directory'; readonly at: string; readonly stats: Stats } | WalkFailure;

/** A walk that checks each directory once. */
export class WindowsWalk {
  private readonly toNative: ToNative;
  private readonly places = new Map<string, WindowsPlace>();

  constructor(toNative: ToNative) {
    this.toNative = toNative;
  }

  /** Returns the directory at a path in the form of `windowsPath`. */
  directory(path: string): WindowsPlace {
    const known = this.places.get(path);
    if (known) return known;
    const parent = path.length === 3 ? null : this.directory(parentOfWindowsPath(path));
    const place = parent === null || parent.kind === 'directory' ? this.look(path) : parent;
    this.places.set(path, place);
    return place;
  }

  /** Forgets a path that was missing and has been made. */
  forget(path: string): void {
    this.places.delete(path);
  }

  private look(path: string): WindowsPlace {
    const at = this.toNative(path);
    try {
      const stats = lstatSync(at);
      if (stats.isSymbolicLink()) {
        const message = `${path} is a symbolic link or a junction, which orch does not follow on Windows`;
        return { kind: 'refused', refusal: { code: 'unsafe_path', message } };
      }
      return stats.isDirectory() ? { kind: 'directory', at, stats } : { kind: 'missing', what: 'not-directory' };
    } catch (error) {
      if (systemCodeOf(error) === 'ENOENT') return { kind: 'missing', what: 'absent' };
      if (systemCodeOf(error) === 'ENOTDIR') return { kind: 'missing', what: 'not-directory' };
      return { kind: 'refused', refusal: refusalOf(error, `cannot look at ${path}`, 'observe_failed') };
    }
  }
}
