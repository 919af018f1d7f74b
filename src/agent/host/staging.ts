/**
 * New files, directories and links are made in a private directory beside their place, finished through their descriptors, and
 * moved to their place. So no other user can exchange, open or read them before, and nothing about them is chosen by the owner of
 * the directory that they come into.
 */
import {
  closeSync,
  constants,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  type Stats,
  symlinkSync,
  unlinkSync,
} from 'node:fs';
import { Fault, systemCodeOf } from '../../kernel/fault.js';
import { refusalOfVirtual } from '../../resources/unix/unix-metadata.js';
import { parentOf } from '../../resources/unix/unix-path.js';
import type { AccessLists } from './attributes.js';
import type { HeldEntry, Reach, SafeWalk } from './safe-walk.js';
import type { Temporaries } from './temporaries.js';
import { isVirtual } from './virtual-files.js';

interface StagingTools {
  readonly walk: SafeWalk;
  readonly reach: Reach;
  readonly temporaries: Temporaries;
  readonly lists: AccessLists;
}

/** Where something new comes: its path, and the directory of that path as the walk has reached it. */
export interface Destination {
  readonly directory: HeldEntry;
  readonly path: string;
}

/** A private directory of this process in which no access list is inherited. */
interface Room {
  readonly held: HeldEntry;
  /** Path by which it is removed. */
  readonly at: string;
}

const CREATE = constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | constants.O_NOFOLLOW;
const OPEN_DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const FOR_OTHERS = 0o077;

export class Staging {
  private readonly tools: StagingTools;
  private readonly rooms = new Map<HeldEntry, Room | { readonly failure: unknown }>();
  private readonly staged: Staged[] = [];

  constructor(tools: StagingTools) {
    this.tools = tools;
  }

  /** Makes the rooms for several destinations together. A failure is thrown by what needs the room. */
  prepare(destinations: readonly Destination[]): void {
    const opened: { readonly destination: Destination; readonly room: Room }[] = [];
    for (const destination of destinations) {
      const { directory } = destination;
      if (this.rooms.has(directory) || isVirtual(directory)) continue;
      try {
        const room = this.open(directory);
        this.rooms.set(directory, room);
        opened.push({ destination, room });
      } catch (failure) {
        this.rooms.set(directory, { failure });
      }
    }
    const { walk, lists } = this.tools;
    const isKnown = ({ destination: { directory } }: (typeof opened)[number]) =>
      walk.isTrustedDirectory(directory) && lists.isRemembered(directory.stats);
    const suspects = opened.filter((one) => !isKnown(one));
    const found = suspects.length === 0 ? [] : lists.find(suspects.map(({ room }) => room.held.at));
    for (const [at, { destination, room }] of suspects.entries()) {
      this.rooms.set(destination.directory, this.cleaned(destination, room, found?.[at] ?? null));
    }
  }

  /** Makes an empty file that only this process can open. */
  file(destination: Destination): StagedFileEntry {
    refuseVirtual(destination);
    const at = this.placeIn(this.room(destination), destination);
    return this.keep(new StagedFileEntry(at, openSync(at, CREATE, 0o600)));
  }

  /**
   * Makes an empty directory that only this process can enter. The kernel's file systems move no directories: there it is made in
   * its place, which belongs to root.
   */
  directory(destination: Destination, target: string): StagedDirectory {
    const at = isVirtual(destination.directory) ? target : this.placeIn(this.room(destination), destination);
    mkdirSync(at, 0o700);
    try {
      return this.keep(new StagedDirectory(at, openSync(at, OPEN_DIRECTORY)));
    } catch (error) {
      removeEmpty(at);
      throw error;
    }
  }

  /** Remembers a directory that was made here, so that no inherited list is looked for in it. */
  remember(made: Stats): void {
    this.tools.lists.remember(made);
  }

  /** Makes a link of this process's user. */
  link(destination: Destination, target: string): Staged {
    refuseVirtual(destination);
    const at = this.placeIn(this.room(destination), destination);
    symlinkSync(target, at);
    return this.keep(new Staged(at));
  }

  /** Returns a place for something that makes way; what is there in the end is removed. */
  reserve(destination: Destination): Staged {
    refuseVirtual(destination);
    return this.keep(new Staged(this.placeIn(this.room(destination), destination)));
  }

  /** Removes what was not moved, and the rooms. Nothing can be made afterwards. */
  clear(): void {
    for (const one of this.staged.splice(0)) one.discard();
    for (const room of this.rooms.values()) if (!('failure' in room)) leave(room);
    this.rooms.clear();
  }

  private keep<S extends Staged>(staged: S): S {
    this.staged.push(staged);
    return staged;
  }

  private placeIn({ held }: Room, { path }: Destination): string {
    return `${held.at}/${this.tools.temporaries.nameFor(path.slice(path.lastIndexOf('/') + 1))}`;
  }

  private room(destination: Destination): Room {
    this.prepare([destination]);
    const room = this.rooms.get(destination.directory);
    if (room === undefined) throw new Error('the room was not made');
    if ('failure' in room) throw room.failure;
    return room;
  }

  private open(directory: HeldEntry): Room {
    const { temporaries, reach } = this.tools;
    temporaries.removeDead(directory);
    const at = `${directory.at}/${temporaries.nameFor('new')}`;
    mkdirSync(at, 0o700);
    const held = reach(at);
    if (isPrivate(held.stats) && readdirSync(`${held.at}/.`).length === 0) return { held, at };
    held.release();
    throw new Fault('unsafe_path', 'another user exchanged the directory for new files as soon as it was made');
  }

  /** Returns a room in which no list is inherited: this one, or one in a directory above. */
  private cleaned(destination: Destination, room: Room, hasList: boolean | null): Room | { readonly failure: unknown } {
    const { walk, lists } = this.tools;
    const { directory } = destination;
    const isTrusted = walk.isTrustedDirectory(directory);
    if (hasList === false) {
      if (isTrusted) lists.remember(directory.stats);
      return room;
    }
    if (hasList === true && lists.remove(room.held, 0o700)) return room;
    // Only root, or the user of this process, can have chosen the list of the directory.
    if (isTrusted) return room;
    leave(room);
    try {
      return this.openAbove(destination);
    } catch (failure) {
      return { failure };
    }
  }

  /** Makes a room in the nearest directory of root on the same file system, where the programs for access lists fail. */
  private openAbove({ directory, path }: Destination): Room {
    const { walk } = this.tools;
    for (let above = parentOf(parentOf(path)); ; above = parentOf(above)) {
      const place = walk.directory(above);
      if (place.kind !== 'directory' || place.held.stats.dev !== directory.stats.dev) break;
      if (walk.isTrustedDirectory(place.held)) return this.open(place.held);
      if (above === '/') break;
    }
    // Access lists of macOS are not looked at.
    if (process.platform !== 'linux') return this.open(directory);
    throw new Fault(
      'unsafe_path',
      `${path} could get an access list from its directory, which is not root's, and this machine has no "ls" and "cp" of GNU that could prevent it`,
    );
  }
}

/** Something new that is not in its place yet. */
export class Staged {
  private readonly at: string;
  private isMoved = false;
  protected isDiscarded = false;

  constructor(at: string) {
    this.at = at;
  }

  /** Path of the entry while it is not moved. */
  get place(): string {
    return this.at;
  }

  /** Moves it to its place, over a file that is there. */
  moveTo(target: string): void {
    renameSync(this.at, target);
    this.isMoved = true;
  }

  /** Removes it unless it was moved, and closes it. Safe to call twice. */
  discard(): void {
    if (!this.isMoved && !this.isDiscarded) this.remove(this.at);
    this.isDiscarded = true;
  }

  protected remove(at: string): void {
    try {
      unlinkSync(at);
    } catch {
      // The next run in this directory removes it.
    }
  }
}

export class StagedFileEntry extends Staged {
  /** Closed by `close` and `discard`. */
  readonly descriptor: number;
  private isClosed = false;

  constructor(at: string, descriptor: number) {
    super(at);
    this.descriptor = descriptor;
  }

  /** Closes a finished file before it is moved, where many are made. Safe to call twice. */
  close(): void {
    if (!this.isClosed) closeSync(this.descriptor);
    this.isClosed = true;
  }

  override discard(): void {
    this.close();
    super.discard();
  }
}

export class StagedDirectory extends Staged {
  /** Owned by the caller. */
  readonly descriptor: number;

  constructor(at: string, descriptor: number) {
    super(at);
    this.descriptor = descriptor;
  }

  /** Throws where something has the name, even an empty directory, which a rename would replace. */
  override moveTo(target: string): void {
    if (target !== this.place && lstatSync(target, { throwIfNoEntry: false }) !== undefined) {
      throw Object.assign(new Error('the path exists already'), { code: 'EEXIST' });
    }
    super.moveTo(target);
  }

  protected override remove(at: string): void {
    removeEmpty(at);
  }
}

/** Throws where only the kernel makes files. */
function refuseVirtual({ directory, path }: Destination): void {
  if (!isVirtual(directory)) return;
  const { code, message } = refusalOfVirtual(path);
  throw new Fault(code, message);
}

/** True for a directory of this process's user that no other can enter. */
const isPrivate = (stats: Stats): boolean =>
  stats.isDirectory() &&
  (stats.mode & FOR_OTHERS) === 0 &&
  (process.geteuid === undefined || stats.uid === process.geteuid());

function leave({ held, at }: Room): void {
  held.release();
  removeEmpty(at);
}

function removeEmpty(at: string): void {
  try {
    rmdirSync(at);
  } catch (error) {
    // One that was exchanged or filled in the meantime stays; the next run in this directory removes what is left.
    if (systemCodeOf(error) === undefined) throw error;
  }
}
