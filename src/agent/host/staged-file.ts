/** A file on its way: written beside its place, to be renamed over it when it is safe on the disk. */
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  lstatSync,
  openSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { promisify } from 'node:util';
import { Fault } from '../../kernel/fault.js';
import type { Accounts, Step } from '../../resources/host.js';
import type { Footing, Reach } from './footing.js';
import type { Replacement } from './keep-attributes.js';
import { isSameOwner, type Owners, ownersOf } from './ownership.js';
import type { Temporaries } from './temporaries.js';

export type WriteStep = Extract<Step, { do: 'write-file' }>;

export interface FileMachine {
  readonly accounts: Accounts;
  readonly temporaries: Temporaries;
  readonly reach: Reach;
}

const CREATE = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
const NEW_MODE = 0o644;
const PERMISSIONS = 0o7777;
/** Of an old mode, what must not show on a file that shall not have it. */
const CLOSE = 0o7077;

const sync = promisify(fsync);

export class StagedFile {
  readonly directory: Footing;
  private readonly target: string;
  private readonly temporary: string;
  private readonly mode: number;
  private readonly replaced: Footing | null;
  private descriptor: number | null = null;
  private isRenamed = false;
  private isDiscarded = false;

  /** Writes the content; throws, leaving nothing behind, when that cannot be done. */
  constructor(step: WriteStep, directory: Footing, machine: FileMachine) {
    const name = step.path.slice(step.path.lastIndexOf('/') + 1);
    this.directory = directory;
    this.target = `${directory.at}/${name}`;
    this.temporary = `${directory.at}/${machine.temporaries.nameFor(name)}`;
    this.replaced = reachReplaced(machine.reach, this.target, step.path);
    this.mode = step.mode ?? (this.replaced ? this.replaced.stats.mode & PERMISSIONS : NEW_MODE);
    try {
      this.descriptor = openSync(this.temporary, CREATE, 0o600);
      writeFileSync(this.descriptor, step.content);
      this.giveTo(step, machine.accounts);
    } catch (error) {
      this.discard();
      throw error;
    }
  }

  /** What of the file that goes is to be kept, or null when there is none. */
  replacement(): Replacement | null {
    const { descriptor: to, replaced } = this;
    if (to === null || replaced === null) return null;
    return { from: replaced.at, to, withMode: (replaced.stats.mode & CLOSE & ~this.mode) === 0 };
  }

  /** Sets the mode; after the owner, because a change of owner takes setuid away. */
  setMode(): void {
    if (this.descriptor !== null) fchmodSync(this.descriptor, this.mode);
  }

  /** Resolves when content, owner and mode are on the disk. */
  async sync(): Promise<void> {
    if (this.descriptor !== null) await sync(this.descriptor);
  }

  rename(): void {
    renameSync(this.temporary, this.target);
    this.isRenamed = true;
  }

  /** Frees the descriptors, and removes the temporary file unless it was renamed. Safe to call twice. */
  discard(): void {
    if (this.isDiscarded) return;
    this.isDiscarded = true;
    this.replaced?.release();
    if (this.descriptor === null) return;
    closeSync(this.descriptor);
    this.descriptor = null;
    if (this.isRenamed) return;
    try {
      unlinkSync(this.temporary);
    } catch {
      // The next run that touches the directory sweeps it.
    }
  }

  private giveTo(step: WriteStep, accounts: Accounts): void {
    if (this.descriptor === null || (step.owner === null && step.group === null && this.replaced === null)) return;
    const own: Owners = fstatSync(this.descriptor);
    const owners = ownersOf(step, this.replaced?.stats ?? own, accounts);
    if (!isSameOwner(own, owners)) fchownSync(this.descriptor, owners.uid, owners.gid);
  }
}

/** The regular file at a path; null when there is none or a link, which the rename replaces. Throws `wrong_type`. */
function reachReplaced(reach: Reach, target: string, path: string): Footing | null {
  if (lstatSync(target, { throwIfNoEntry: false }) === undefined) return null;
  const found = reach(target);
  if (found.stats.isFile()) return found;
  found.release();
  if (found.stats.isSymbolicLink()) return null;
  throw new Fault('wrong_type', `${path} is not a regular file any more`);
}
