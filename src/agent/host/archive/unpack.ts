/**
 * Unpacks an archive into a directory. All of it is written to a private directory beside its place and checked first. Then the files
 * are moved to their places, and whatever fails puts back what was there.
 */
import { closeSync, fsyncSync, linkSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { syncDirectory } from '../../../disk/durable.js';
import { Fault, messageOf, systemCodeOf } from '../../../kernel/fault.js';
import { refusalOfOwner } from '../../../resources/archive/unpacked.js';
import type { Accounts, FileStep, Ownership } from '../../../resources/host.js';
import { parentOf, problemOfUnixPath } from '../../../resources/unix/unix-path.js';
import { isUnprivileged } from '../../../resources/unix/unix-permissions.js';
import { makeOwned, makeParents, setMetadata } from '../in-place.js';
import { ownersOf } from '../ownership.js';
import { reached } from '../path-refusal.js';
import { SafeWalk } from '../safe-walk.js';
import type { BroughtFiles } from '../source-files.js';
import { type Destination, type Staged, Staging } from '../staging.js';
import type { TreeEntry } from './archive-tree.js';
import { compareEntry, hasContent, ROOT_MODE } from './compare-entry.js';
import { type Ready, StagedArchive } from './staged-archive.js';
import { type PlaceTools, type TreePlace, TreePlaces } from './tree-places.js';
import type { UnpackedEntry, UnpackedRecord, UnpackedRecords } from './unpacked-records.js';

export type UnpackStep = Extract<FileStep, { do: 'unpack' }>;

export interface UnpackTools extends PlaceTools {
  readonly accounts: Accounts;
  readonly files: BroughtFiles;
  readonly records: UnpackedRecords;
  readonly signal: AbortSignal | undefined;
}

/** Rejects with the Fault or the error of the system that says why nothing was changed. */
export async function unpack(step: UnpackStep, tools: UnpackTools): Promise<void> {
  const unpacking = new Unpacking(step, tools);
  try {
    await unpacking.stage();
    unpacking.check();
    await unpacking.move();
  } finally {
    unpacking.close();
  }
}

class Unpacking {
  private readonly step: UnpackStep;
  private readonly tools: UnpackTools;
  private readonly walk: SafeWalk;
  private readonly staging: Staging;
  private readonly places: TreePlaces;
  private readonly owners: Ownership;
  private readonly spares: ReadonlySet<string>;
  private readonly before: UnpackedRecord | null;
  private readonly former: ReadonlyMap<string, UnpackedEntry>;
  /** Files and links of the archive by path. */
  private ready: ReadonlyMap<string, Ready> = new Map();
  private directories: readonly Extract<TreeEntry, { type: 'directory' }>[] = [];
  private room: Destination | null = null;
  /** Undoes what was moved, last first. */
  private readonly undo: (() => void)[] = [];
  /** Directories in which something has changed. */
  private readonly touched = new Set<string>();

  constructor(step: UnpackStep, tools: UnpackTools) {
    this.step = step;
    this.tools = tools;
    this.walk = new SafeWalk(tools.reach);
    this.staging = new Staging({ ...tools, walk: this.walk });
    this.places = new TreePlaces(step.path, tools);
    this.owners = ownersOf(step, tools.accounts.own, tools.accounts);
    this.spares = new Set(step.spares);
    this.before = tools.records.read(step.path);
    this.former = new Map(this.before?.entries.map((entry) => [entry.path, entry]));
  }

  /** Writes everything to a private directory beside its place. */
  async stage(): Promise<void> {
    const { path } = this.step;
    const problem = problemOfUnixPath(path);
    if (problem !== null) throw new Fault('unsafe_path', `${path} ${problem}`);
    const room = this.findRoom();
    this.room = room;
    const archive = new StagedArchive({ staging: this.staging, room, owners: this.owners });
    this.ready = archive.ready;
    await archive.stage(this.step, this.tools);
    this.directories = archive.directories;
  }

  /** Returns the nearest directory that is there, in which everything waits. */
  private findRoom(): Destination {
    const { path, parents } = this.step;
    for (let at = path; ; at = parentOf(at)) {
      const place = this.walk.directory(at);
      const mayMiss = at === path || parents === true;
      if (place.kind === 'missing' && place.what === 'absent' && mayMiss && at !== '/') continue;
      const { held } = reached(place, at);
      const { own, userName } = this.tools.accounts;
      if (isUnprivileged(held.stats.uid, own) && held.stats.uid !== this.owners.uid) {
        throw new Fault('unsafe_path', refusalOfOwner(at, userName(held.stats.uid)));
      }
      return { directory: held, path: `${at === '/' ? '' : at}/archive` };
    }
  }

  private destination(): Destination {
    if (this.room === null) throw new Error('the room was not found');
    return this.room;
  }

  /** Throws where something in the directory is in the way. Changes nothing. */
  check(): void {
    for (const { path } of this.directories) {
      const stats = this.place(path)?.stats ?? null;
      if (stats === null || stats.isDirectory() || this.makesWay(path)) continue;
      throw this.inTheWay(path, stats.isSymbolicLink() ? 'is a link' : 'is no directory');
    }
    for (const [path, { entry }] of this.ready) {
      const place = this.place(path);
      const stats = place?.stats ?? null;
      if (place === null || stats === null || this.spares.has(path)) continue;
      const former = this.former.get(path);
      if (stats.isDirectory()) {
        if (former?.type === 'directory' && former.isMade && this.isEmptied(path)) continue;
        throw this.inTheWay(path, 'is a directory');
      }
      if (!stats.isFile() && !stats.isSymbolicLink()) throw this.inTheWay(path, 'is no file');
      const isOurs = former !== undefined && former.type !== 'directory';
      if (isOurs || this.step.replace || hasContent(place, entry)) continue;
      throw this.inTheWay(path, 'is there already, and was not unpacked here', ', or set "replace: true"');
    }
  }

  private inTheWay(path: string, why: string, mend = ''): Fault {
    const message = `${this.step.path}/${path} ${why}; move it away${mend}. Nothing was changed`;
    return new Fault('wrong_type', message);
  }

  /** Returns where an entry is or will be; null below something that makes way for a directory. */
  private place(path: string): TreePlace | null {
    for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
      if (this.makesWay(path.slice(0, at))) return null;
    }
    return this.places.place(path);
  }

  /** True for a file or link of the former archive, unchanged, that goes because the new archive has no such file. */
  private makesWay(path: string): boolean {
    const former = this.former.get(path);
    if (former === undefined || former.type === 'directory' || this.ready.has(path) || this.spares.has(path))
      return false;
    try {
      const place = this.places.place(path);
      return place !== null && place.stats !== null && hasContent(place, former);
    } catch (error) {
      // Something else is on the way by now, and what is behind it stays.
      if (error instanceof Fault) return false;
      throw error;
    }
  }

  /** True for a directory of the former archive in which nothing stays. */
  private isEmptied(path: string): boolean {
    const names = new Set([...this.former.keys()].filter((one) => one.startsWith(`${path}/`)));
    for (const name of names) {
      if (this.former.get(name)?.type !== 'directory' && this.places.place(name)?.stats && !this.makesWay(name))
        return false;
    }
    return true;
  }

  /** Moves everything to its place. Rejects after it has put back what was there. */
  async move(): Promise<void> {
    const { records } = this.tools;
    const after = this.record();
    const isRootMissing = this.places.directory('') === null;
    records.write({ ...after, isComplete: false, entries: this.allEntries(after) });
    try {
      if (isRootMissing) this.makeRoot();
      this.change();
      // The inner ones first: nothing is reached through a directory that belongs to another user by then.
      for (const entry of this.directories.toReversed()) this.repairDirectory(entry);
      if (!isRootMissing && this.before?.isMade) this.repairRoot();
      this.syncTouched();
      records.write(after);
    } catch (error) {
      this.putBack(error);
      if (this.before === null) records.remove(this.step.path);
      else records.write(this.before);
      throw error;
    }
  }

  /** Returns the record of the archive when all is in its place. */
  private record(): UnpackedRecord {
    const { path, content, format, strip } = this.step;
    const entries: UnpackedEntry[] = [
      ...this.directories.map((entry) => {
        const former = this.former.get(entry.path);
        const isThere = this.place(entry.path)?.stats?.isDirectory() === true;
        return { ...entry, isMade: !isThere || (former?.type === 'directory' && former.isMade) };
      }),
      ...[...this.ready.values()].map(({ entry }) => entry),
    ];
    entries.sort((a, b) => (a.path < b.path ? -1 : 1));
    return {
      version: 1,
      path,
      sha256: content.sha256,
      format,
      strip,
      isComplete: true,
      isMade: this.places.directory('') === null || this.before?.isMade === true,
      entries,
    };
  }

  /** Adds what of the former archive may still be there while files are moved. */
  private allEntries({ entries }: UnpackedRecord): readonly UnpackedEntry[] {
    const known = new Set(entries.map(({ path }) => path));
    const all = [...entries, ...[...this.former.values()].filter(({ path }) => !known.has(path))];
    return all.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  private change(): void {
    const goes = new Set([...this.former.keys()].filter((path) => this.makesWay(path)));
    const remove = (paths: readonly string[]) => {
      for (const path of paths) if (goes.delete(path)) this.setAside(path);
    };
    const isDirectory = new Set(this.directories.map(({ path }) => path));
    // Removes first the entries whose place gets another type, and the others once the new files are there.
    remove([...isDirectory]);
    const replaced = this.formerDirectories().filter((path) => this.ready.has(path));
    for (const path of replaced) {
      const isInside = (one: string) => one.startsWith(`${path}/`);
      remove([...goes].filter(isInside));
      this.removeDirectories([...this.formerDirectories().filter(isInside), path]);
    }
    for (const entry of this.directories) this.makeDirectory(entry);
    for (const [path, ready] of this.ready) this.put(path, ready);
    remove([...goes]);
    const known = new Set([...isDirectory, ...this.ready.keys()]);
    this.removeDirectories(this.formerDirectories().filter((path) => !known.has(path)));
  }

  /** Directories that were made for the former archive, the innermost first. */
  private formerDirectories(): readonly string[] {
    return [...this.former.values()]
      .flatMap((entry) => (entry.type === 'directory' && entry.isMade ? [entry.path] : []))
      .sort((a, b) => (a < b ? 1 : -1));
  }

  private makeRoot(): void {
    const { path } = this.step;
    const { accounts } = this.tools;
    const { walk, staging } = this.places.way;
    const missing: string[] = [];
    for (let at = parentOf(path); walk.directory(at).kind === 'missing'; at = parentOf(at)) missing.push(at);
    makeParents(parentOf(path), { walk, staging, accounts }, ({ descriptor }) => {
      fsyncSync(descriptor);
      closeSync(descriptor);
    });
    const { held } = reached(walk.directory(parentOf(path)), parentOf(path));
    const at = `${held.at}${path.slice(path.lastIndexOf('/'))}`;
    const descriptor = makeOwned({ directory: held, path }, at, staging, () => ({ ...this.owners, mode: ROOT_MODE }));
    closeSync(descriptor);
    syncDirectory(`${held.at}/.`);
    this.places.renew();
    this.undo.push(() => {
      for (const one of [path, ...missing]) {
        this.places.renew();
        const parent = reached(this.places.way.walk.directory(parentOf(one)), parentOf(one));
        rmdirSync(`${parent.held.at}${one.slice(one.lastIndexOf('/'))}`);
      }
    });
  }

  /** Gives the directory that was made for the archive its owner and mode again. */
  private repairRoot(): void {
    const { path } = this.step;
    const root = this.places.directory('');
    if (root === null) return;
    const { walk } = this.places.way;
    const { held: directory } = reached(walk.directory(parentOf(path)), parentOf(path));
    const at = `${directory.at}${path.slice(path.lastIndexOf('/'))}`;
    this.repair({ directory, at, stats: root.stats }, path, ROOT_MODE);
  }

  /** Gives a directory that was made for the former archive its owner and mode again. */
  private repairDirectory({ path, mode }: Extract<TreeEntry, { type: 'directory' }>): void {
    const former = this.former.get(path);
    if (former?.type !== 'directory' || !former.isMade) return;
    this.repair(this.needed(path), `${this.step.path}/${path}`, mode);
  }

  private repair(place: TreePlace, path: string, mode: number): void {
    const wanted = { type: 'directory', path, mode, isMade: true } as const;
    if (compareEntry(place, wanted, this.declaredOwners()) === null) return;
    const { directory, at } = place;
    const { walk } = this.places.way;
    const { owner, group } = this.step;
    const changed = setMetadata(
      { do: 'set-metadata', path, expect: 'directory', owner, group, mode },
      { directory, at, exposureOf: (stats) => walk.exposureOf(directory, stats) },
      this.tools,
    );
    if (changed !== null) {
      fsyncSync(changed);
      closeSync(changed);
    }
    this.places.renew();
  }

  /** Makes a directory that is not there. */
  private makeDirectory(entry: Extract<TreeEntry, { type: 'directory' }>): void {
    const { path, mode } = entry;
    const place = this.needed(path);
    if (place.stats !== null) return;
    const full = `${this.step.path}/${path}`;
    const { walk, staging } = this.places.way;
    const destination = { directory: place.directory, path: full };
    const descriptor = makeOwned(destination, place.at, staging, () => ({ ...this.owners, mode }));
    closeSync(descriptor);
    walk.forget(full);
    this.touch(path);
    this.undo.push(() => {
      this.places.renew();
      const there = this.places.place(path);
      if (there?.stats) rmdirSync(there.at);
    });
  }

  /** The owners that differences count for. */
  private declaredOwners(): { readonly uid: number | null; readonly gid: number | null } {
    const { owner, group } = this.step;
    return { uid: owner === null ? null : this.owners.uid, gid: group === null ? null : this.owners.gid };
  }

  /** Puts a file or link in its place, unless an equal one is there. */
  private put(path: string, { staged, entry }: Ready): void {
    const place = this.needed(path);
    if (this.spares.has(path) && place.stats !== null) return;
    if (compareEntry(place, entry, this.declaredOwners()) === null) return;
    const before = place.stats;
    const kept = before === null ? null : this.keep(place);
    this.touch(path);
    this.undo.push(() => {
      const there = this.needed(path);
      // A rename to another name of the same file would leave both.
      const isUnchanged = there.stats !== null && there.stats.ino === before?.ino;
      if (kept !== null && !isUnchanged) kept.moveTo(there.at);
      else if (kept === null && there.stats !== null) unlinkSync(there.at);
    });
    staged.moveTo(place.at);
  }

  /** Keeps what is at a place for the case of a failure. */
  private keep({ at }: TreePlace): Staged {
    const kept = this.staging.reserve(this.destination());
    try {
      linkSync(at, kept.place);
    } catch {
      // Some file systems have no second names, and some users may not give one to a foreign file. Then it is gone for a moment.
      renameSync(at, kept.place);
    }
    return kept;
  }

  /** Takes a file or link of the former archive out of the directory. */
  private setAside(path: string): void {
    const place = this.places.place(path);
    if (place === null || place.stats === null) return;
    const kept = this.staging.reserve(this.destination());
    renameSync(place.at, kept.place);
    this.touch(path);
    this.undo.push(() => kept.moveTo(this.needed(path).at));
  }

  /** Removes those directories that are empty. @param paths the innermost first */
  private removeDirectories(paths: readonly string[]): void {
    for (const path of paths) {
      const stats = this.places.place(path)?.stats;
      if (!stats?.isDirectory()) continue;
      // Its own descriptor would be that of a directory that is gone.
      this.places.renew();
      try {
        rmdirSync(this.needed(path).at);
      } catch (error) {
        if (!['ENOTEMPTY', 'EEXIST', 'EBUSY'].includes(systemCodeOf(error) ?? '')) throw error;
        continue;
      }
      this.touched.delete(path);
      this.touch(path);
      this.undo.push(() => {
        const { uid, gid } = stats;
        const { directory, at } = this.needed(path);
        const destination = { directory, path: `${this.step.path}/${path}` };
        closeSync(makeOwned(destination, at, this.places.way.staging, () => ({ uid, gid, mode: stats.mode & 0o7777 })));
        this.places.renew();
      });
    }
  }

  private needed(path: string): TreePlace {
    const place = this.places.place(path);
    if (place === null) throw new Fault('parent_missing', `the directory of ${this.step.path}/${path} is gone`);
    return place;
  }

  private touch(path: string): void {
    this.touched.add(path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '');
  }

  private syncTouched(): void {
    for (const path of this.touched) {
      try {
        const held = this.places.directory(path);
        if (held !== null) syncDirectory(`${held.at}/.`);
      } catch (error) {
        // It is a directory no longer, or one that may be written but not listed.
        if (!(error instanceof Fault) && systemCodeOf(error) !== 'EACCES') throw error;
      }
    }
  }

  /** Undoes everything. Throws a Fault with both reasons if that fails. */
  private putBack(cause: unknown): void {
    try {
      for (const one of this.undo.splice(0).reverse()) one();
      this.places.renew();
      this.syncTouched();
    } catch (error) {
      const message = `${messageOf(cause)}; what was there could not be put back: ${messageOf(error)}`;
      throw new Fault('apply_failed', message, { cause });
    }
  }

  close(): void {
    this.places.renew();
    this.staging.clear();
    this.walk.close();
  }
}
