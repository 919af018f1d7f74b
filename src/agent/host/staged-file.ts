/** The new file of a `write-file` step, to be renamed over its target once it is durable. */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  lstatSync,
  openSync,
  readFileSync,
} from 'node:fs';
import { promisify } from 'node:util';
import { Fault } from '../../kernel/fault.js';
import type { Accounts, Ownership, Step } from '../../resources/host.js';
import { keptMode } from '../../resources/unix/unix-permissions.js';
import type { Replacement } from './attributes.js';
import type { StepLocation } from './in-place.js';
import { inheritedBy, isSameOwner, ownersOfReplacement, takeoverOf } from './ownership.js';
import type { HeldEntry, Reach } from './safe-walk.js';
import type { BroughtFiles } from './source-files.js';
import type { StagedFileEntry, Staging } from './staging.js';

type WriteStep = Extract<Step, { do: 'write-file' }>;

interface FileMachine {
  readonly accounts: Accounts;
  readonly staging: Staging;
  readonly reach: Reach;
  readonly files: BroughtFiles;
}

const LOOK = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const NEW_MODE = 0o644;
/** Bits of an old mode that must not appear on the new file even for a moment. */
const CLOSE = 0o7077;

const sync = promisify(fsync);

export class StagedFile {
  private readonly step: WriteStep;
  private readonly target: string;
  private readonly entry: StagedFileEntry;
  private readonly mode: number;
  private readonly owners: Ownership;
  private readonly replaced: HeldEntry | null;
  /** True unless a user other than root and the owner of the replaced file could have chosen its access list. */
  private readonly keepsList: boolean;

  /** Writes the content into a file of `machine.staging`, which removes it unless it is renamed. */
  constructor(step: WriteStep, location: StepLocation, machine: FileMachine) {
    this.step = step;
    this.target = location.at;
    this.replaced = reachReplaced(machine.reach, location.at, step.path);
    let entry: StagedFileEntry | null = null;
    try {
      entry = machine.staging.file({ directory: location.directory, path: step.path });
      this.entry = entry;
      const { descriptor } = entry;
      machine.files.write(descriptor, step.content);
      const made = fstatSync(descriptor);
      const there = this.replaced?.stats ?? inheritedBy(made, location.directory.stats, machine.accounts.own);
      this.owners = ownersOfReplacement(step, there, machine.accounts);
      this.mode = step.mode ?? this.modeFor(step);
      if (!isSameOwner(made, this.owners)) fchownSync(descriptor, this.owners.uid, this.owners.gid);
      const exposure = this.replaced === null ? {} : location.exposureOf(this.replaced.stats);
      this.keepsList = exposure.exposedTo !== 'others';
    } catch (error) {
      // Its room on a full disk is for the other files.
      entry?.discard();
      this.replaced?.release();
      throw error;
    }
  }

  /**
   * Returns the file whose access list and attributes are kept, or null when there is none: those of a file that belonged to
   * another owner or group would let its former owner in. The list is left out where another user could have chosen it, because
   * that user can move files there.
   */
  replacement(): Replacement | null {
    const { entry, replaced } = this;
    if (replaced === null || !isSameOwner(replaced.stats, this.owners)) return null;
    const withMode = this.keepsList && (replaced.stats.mode & CLOSE & ~this.mode) === 0;
    return { from: replaced.at, to: entry.descriptor, withMode };
  }

  /**
   * Sets the mode; after the owner, because a change of owner clears setuid. It clears capabilities too, which must not pass to
   * a new content, so the owner is set even where it is right.
   */
  setMode(): void {
    const { descriptor } = this.entry;
    if (this.replaced !== null) fchownSync(descriptor, this.owners.uid, this.owners.gid);
    fchmodSync(descriptor, this.mode);
  }

  /** Resolves when content, owner and mode are on the disk. */
  async sync(): Promise<void> {
    await sync(this.entry.descriptor);
  }

  /** Throws `busy` when the file has changed since the content was made from it. */
  rename(): void {
    const { over, path } = this.step;
    if (over !== undefined && !hasContent(this.target, over)) {
      const message = `another program changed ${path} in the meantime, so it was left as it is; apply again`;
      throw new Fault('busy', message);
    }
    this.entry.moveTo(this.target);
  }

  /** Releases the replaced file. */
  close(): void {
    this.replaced?.release();
  }

  private modeFor(step: WriteStep): number {
    if (this.replaced === null) return NEW_MODE;
    const { stats } = this.replaced;
    return keptMode(stats.mode, { ...takeoverOf(step, stats, this.owners), isReplaced: true });
  }
}

/** True when a file has exactly that content; with null, when there is no file. */
function hasContent(at: string, content: string | null): boolean {
  if (content === null) return lstatSync(at, { throwIfNoEntry: false }) === undefined;
  const wanted = Buffer.from(content);
  const descriptor = openSync(at, LOOK);
  try {
    const stats = fstatSync(descriptor);
    return stats.isFile() && stats.size === wanted.length && readFileSync(descriptor).equals(wanted);
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the regular file at a path; null without one and for a link, which the rename replaces. Throws `wrong_type`. */
function reachReplaced(reach: Reach, target: string, path: string): HeldEntry | null {
  if (lstatSync(target, { throwIfNoEntry: false }) === undefined) return null;
  const found = reach(target);
  if (found.stats.isFile()) return found;
  found.release();
  if (found.stats.isSymbolicLink()) return null;
  throw new Fault('wrong_type', `${path} is no longer a regular file`);
}
