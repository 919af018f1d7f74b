/** Where the paths of a run lie on this machine, however they are written. */
import { kindOfAbsence } from '../../resources/absence-name.js';
import type { Host } from '../../resources/host.js';
import { symlinkUnix } from '../../resources/symlink-unix.js';
import { parentOf } from '../../resources/unix/unix-path.js';
import { parentOfWindowsPath } from '../../resources/windows/windows-path.js';
import type { Target } from './target.js';

/** The way to a path. Names are those of `Host.locator`. */
export class Place {
  private readonly path: string;
  private readonly tools: Tools;
  private readonly isLink: boolean;

  /** @param isLink true for a link, which is never a directory itself */
  constructor(path: string, tools: Tools, isLink: boolean) {
    this.path = path;
    this.tools = tools;
    this.isLink = isLink;
  }

  /** Name of the entry in its directory. */
  get self(): string {
    const { nameOf, parentOf: up, entry } = this.tools;
    return entry(nameOf(up(this.path)), this.path);
  }

  /** Name as a directory: differs from `self` where it exists as one. */
  get inside(): string {
    return this.isLink ? this.self : this.tools.nameOf(this.path);
  }

  /** Names of the directories above, nearest first. */
  get above(): readonly string[] {
    return this.way.map(({ name }) => name);
  }

  isIn(outer: Place): boolean {
    return this.above.includes(outer.inside);
  }

  /** Returns the directories from its parent up to the one that it lies in, as its own path writes them. */
  upTo(outer: Place): readonly string[] {
    const { way } = this;
    return way.slice(0, 1 + way.findIndex(({ name }) => name === outer.inside)).map(({ path }) => path);
  }

  private get way(): readonly { readonly path: string; readonly name: string }[] {
    const { parentOf: up, nameOf } = this.tools;
    const way: { readonly path: string; readonly name: string }[] = [];
    let last = this.path;
    for (let at = up(last); at !== last; at = up(at)) {
      way.push({ path: at, name: nameOf(at) });
      last = at;
    }
    return way;
  }
}

interface Tools {
  nameOf(path: string): string;
  parentOf(path: string): string;
  /** Returns the name of an entry of a directory. */
  entry(directory: string, path: string): string;
}

/** Returns the places of the resources that are paths, by their position. They are true until something changes. */
export function placesOf(host: Host, targets: readonly Target[]): ReadonlyMap<number, Place> {
  const tools = host.platform === 'windows' ? BY_TEXT_ON_WINDOWS : unixTools(host);
  const paths = targets.filter(({ kind }) => kind?.family === 'path');
  return new Map(
    paths.map(({ index, source }) => [index, new Place(source.identity, tools, isLink(kindOfAbsence(source.kind)))]),
  );
}

const isLink = (kind: string): boolean => kind === symlinkUnix.kind;

const BY_TEXT_ON_WINDOWS: Tools = {
  nameOf: (path) => path,
  parentOf: parentOfWindowsPath,
  entry: (_, path) => path,
};

function unixTools(host: Host): Tools {
  const nameOf = host.locator?.();
  if (nameOf === undefined) return { nameOf: (path) => path, parentOf, entry: (_, path) => path };
  return { nameOf, parentOf, entry: (directory, path) => `${directory}/${path.slice(path.lastIndexOf('/') + 1)}` };
}
