/** The paths that the resources of a run name, for purges, which spare them. */
import type { Host } from '../../resources/host.js';
import type { Surroundings } from '../../resources/kind.js';
import { parentOf } from '../../resources/unix/unix-path.js';
import { editedBy } from './scope.js';
import { isRemoval, type Target } from './target.js';

/** True until something changes on the machine. Directories are compared by what they are, however a path is written. */
export class DeclaredPaths implements Surroundings {
  /** Names of entries in their directories. */
  private readonly entries = new Set<string>();
  /** Names of directories on the way to them. */
  private readonly way = new Set<string>();
  /** Directories on the way, as their paths are written. */
  private readonly written = new Set<string>();
  /** Names of directories on the way to the agent's own files. */
  private readonly own = new Set<string>();
  private readonly nameOf: (path: string) => string;
  private readonly fold: (text: string) => string;

  constructor(host: Host, targets: readonly Target[]) {
    this.nameOf = host.locator?.() ?? ((path) => path);
    // File systems of macOS take names that differ in case or in composition for one.
    this.fold = host.platform === 'macos' ? (text) => text.normalize('NFC').toLowerCase() : (text) => text;
    for (const target of targets) this.add(target);
    for (const path of host.ownPaths ?? []) for (const at of waysTo(path)) this.own.add(this.nameOf(at));
  }

  isDeclared(path: string): boolean {
    return this.entries.has(this.entryOf(path));
  }

  isOnTheWay(path: string, isLink: boolean): boolean {
    return isLink ? this.written.has(this.fold(path)) : this.way.has(this.fold(this.nameOf(path)));
  }

  holdsAgent(path: string): boolean {
    return this.own.has(this.nameOf(path));
  }

  private add({ kind, source }: Target): void {
    const isGone = isRemoval(source);
    // A released path stays on the machine, but no module declares it any longer.
    if (isGone && source.origin !== 'created') return;
    const isDirectory = source.kind.startsWith('directory-');
    for (const path of pathsOf({ kind, source } as Target)) {
      if (!(isGone && isDirectory)) this.entries.add(this.entryOf(path));
      for (const at of isGone && isDirectory ? [path, ...waysTo(path)] : waysTo(path)) {
        this.way.add(this.fold(this.nameOf(at)));
        this.written.add(this.fold(at));
      }
    }
  }

  private entryOf(path: string): string {
    return this.fold(`${this.nameOf(parentOf(path))}/${path.slice(path.lastIndexOf('/') + 1)}`);
  }
}

/** Returns the directories above a path. */
function waysTo(path: string): readonly string[] {
  const way: string[] = [];
  for (let at = parentOf(path); at !== '/'; at = parentOf(at)) way.push(at);
  return way;
}

/** Returns the paths that belong to a resource: those that it names, without the directories on the way to another one of them. */
function pathsOf(target: Target): readonly string[] {
  const { kind, source } = target;
  const { path, home, creates } = source.body;
  const needed = (kind?.requires(source.body) ?? []).flatMap((one) => (one.family === 'path' ? [one.identity] : []));
  const named = [source.identity, editedBy(target), path, home, creates, ...needed].filter(
    (one): one is string => typeof one === 'string' && one.startsWith('/'),
  );
  return named.filter((one) => !named.some((other) => other.startsWith(`${one}/`)));
}
