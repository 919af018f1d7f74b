/** Reaches what is below a directory by the rules of an apply, and never through links below it. */
import { constants, lstatSync, type Stats } from 'node:fs';
import { Fault } from '../../../kernel/fault.js';
import { parentOf } from '../../../resources/unix/unix-path.js';
import type { AccessLists } from '../attributes.js';
import { reached } from '../path-refusal.js';
import { type HeldEntry, type Reach, SafeWalk } from '../safe-walk.js';
import { Staging } from '../staging.js';
import type { Temporaries } from '../temporaries.js';

export interface PlaceTools {
  readonly reach: Reach;
  readonly temporaries: Temporaries;
  readonly lists: AccessLists;
}

/** Where an entry is, or would be. */
export interface TreePlace {
  readonly directory: HeldEntry;
  /** The path through the directory. */
  readonly at: string;
  /** Null when nothing is there. */
  readonly stats: Stats | null;
}

/** Directories that are held at the same time. */
const MAX_HELD = 200;

export const OPEN_FILE = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW | constants.O_NOCTTY;

export class TreePlaces {
  private readonly root: string;
  private readonly tools: PlaceTools;
  private readonly known = new Map<string, HeldEntry>();
  private current: { readonly walk: SafeWalk; readonly staging: Staging } | null = null;

  /** @param root path of the directory */
  constructor(root: string, tools: PlaceTools) {
    this.root = root;
    this.tools = tools;
  }

  /** The walk and the staging of now; another call may end both. */
  get way(): { readonly walk: SafeWalk; readonly staging: Staging } {
    if (this.current === null) {
      const walk = new SafeWalk(this.tools.reach);
      this.current = { walk, staging: new Staging({ ...this.tools, walk }) };
    }
    return this.current;
  }

  /**
   * Returns where an entry is; null if its directory is missing. The result is valid until the next call. Throws `unsafe_path` and
   * `wrong_type` where something other than a directory of the same file system is on the way.
   */
  place(path: string): TreePlace | null {
    if (this.known.size > MAX_HELD) this.renew();
    const directory = this.directory(path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '');
    if (directory === null) return null;
    const at = `${directory.at}/${path.slice(path.lastIndexOf('/') + 1)}`;
    return { directory, at, stats: lstatSync(at, { throwIfNoEntry: false }) ?? null };
  }

  /** Returns the directory with that path below the root, `''` for the root itself; null if it is missing. */
  directory(path: string): HeldEntry | null {
    const known = this.known.get(path);
    if (known !== undefined) return known;
    const full = path === '' ? this.root : `${this.root}/${path}`;
    if (path !== '') {
      const above = this.directory(parentOf(`/${path}`).slice(1));
      if (above === null) return null;
      const stats = lstatSync(`${above.at}${full.slice(full.lastIndexOf('/'))}`, { throwIfNoEntry: false });
      if (stats === undefined) return null;
      if (!stats.isDirectory())
        throw new Fault('wrong_type', `${full} is ${stats.isSymbolicLink() ? 'a link' : 'no directory'}`);
      if (stats.dev !== above.stats.dev) {
        throw new Fault('wrong_type', `${full} is on another file system, and an archive is unpacked into one`);
      }
    }
    const place = this.way.walk.directory(full);
    if (place.kind === 'missing' && place.what === 'absent') return null;
    const { held } = reached(place, full);
    this.known.set(path, held);
    return held;
  }

  /** Forgets what was reached, after a change of directories. */
  renew(): void {
    this.known.clear();
    this.current?.staging.clear();
    this.current?.walk.close();
    this.current = null;
  }
}
