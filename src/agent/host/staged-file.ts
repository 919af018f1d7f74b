/** A temporary file beside its target, to be renamed over it once it is durable. */

import { execFile } from 'node:child_process';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  lstatSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Fault } from '../../kernel/fault.js';
import type { Accounts, Ownership, Step } from '../../resources/host.js';
import { isUnprivileged, keptMode } from '../../resources/unix/unix-permissions.js';
import { isSameOwner, ownersOfReplacement, takeoverOf } from './ownership.js';
import type { HeldEntry, Reach } from './safe-walk.js';
import type { Temporaries } from './temporaries.js';

type WriteStep = Extract<Step, { do: 'write-file' }>;

interface FileMachine {
  readonly accounts: Accounts;
  readonly temporaries: Temporaries;
  readonly reach: Reach;
}

const CREATE = constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_NOFOLLOW;
const NEW_MODE = 0o644;
/** Bits of an old mode that must not appear on the new file even for a moment. */
const CLOSE = 0o7077;

const sync = promisify(fsync);

export class StagedFile {
  readonly directory: HeldEntry;
  private readonly target: string;
  private readonly temporary: string;
  private readonly mode: number;
  private readonly owners: Ownership;
  private readonly replaced: HeldEntry | null;
  private descriptor: number | null = null;
  private isRenamed = false;
  private isDiscarded = false;

  /** Writes the content. Throws on failure and leaves nothing behind. */
  constructor(step: WriteStep, directory: HeldEntry, machine: FileMachine) {
    const name = step.path.slice(step.path.lastIndexOf('/') + 1);
    this.directory = directory;
    this.target = `${directory.at}/${name}`;
    this.temporary = `${directory.at}/${machine.temporaries.nameFor(name)}`;
    this.replaced = reachReplaced(machine.reach, this.target, step.path);
    try {
      this.descriptor = openSync(this.temporary, CREATE, 0o600);
      writeFileSync(this.descriptor, step.content);
      const made: Ownership = fstatSync(this.descriptor);
      this.owners = this.ownersFor(step, made, machine.accounts);
      this.mode = step.mode ?? this.modeFor(step);
      if (!isSameOwner(made, this.owners)) fchownSync(this.descriptor, this.owners.uid, this.owners.gid);
    } catch (error) {
      this.discard();
      throw error;
    }
  }

  /**
   * Returns the file whose access list and attributes are kept, or null when there is none: those of a file that belonged to
   * another owner or group would let its former owner in.
   */
  replacement(): Replacement | null {
    const { descriptor: to, replaced } = this;
    if (to === null || replaced === null || !isSameOwner(replaced.stats, this.owners)) return null;
    return { from: replaced.at, to, withMode: (replaced.stats.mode & CLOSE & ~this.mode) === 0 };
  }

  /**
   * Sets the mode; after the owner, because a change of owner clears setuid. It clears capabilities too, which must not pass to
   * a new content, so the owner is set even where it is right.
   */
  setMode(): void {
    if (this.descriptor === null) return;
    if (this.replaced !== null) fchownSync(this.descriptor, this.owners.uid, this.owners.gid);
    fchmodSync(this.descriptor, this.mode);
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
      // The next run in this directory removes it.
    }
  }

  private ownersFor(step: WriteStep, made: Ownership, accounts: Accounts): Ownership {
    if (this.replaced !== null) return ownersOfReplacement(step, this.replaced.stats, accounts);
    // The owner of a setgid directory has chosen the group of what is made in it.
    const isChosen = step.isSecret === true && isUnprivileged(this.directory.stats.uid, accounts.own);
    return ownersOfReplacement(step, isChosen ? { uid: made.uid, gid: accounts.own.gid } : made, accounts);
  }

  private modeFor(step: WriteStep): number {
    if (this.replaced === null) return NEW_MODE;
    const { stats } = this.replaced;
    return keptMode(stats.mode, { ...takeoverOf(step, stats, this.owners), isReplaced: true });
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

/** Two open files: the replaced one, and the new one. */
interface Replacement {
  /** Path `/proc/PID/fd/N`; other forms are ignored. */
  readonly from: string;
  /** A descriptor. */
  readonly to: number;
  /** False when the new mode is more restrictive, so that the old one must not appear even for a moment. */
  readonly withMode: boolean;
}

const DESCRIPTOR = /^(\/proc\/\d+\/fd\/)(\d+)$/;
/** Milliseconds. */
const TIMEOUT = 30_000;

/**
 * Copies access control lists, extended attributes and security contexts, which Node cannot read, with one `cp` for all files.
 * Best effort: file systems and versions of `cp` without support keep nothing. Leaves the owners, wrong modes, and copied
 * capabilities: the caller sets owner and mode afterwards.
 */
export async function keepAttributes(replacements: readonly Replacement[]): Promise<void> {
  for (const withMode of [true, false]) {
    const group = replacements.filter((one) => one.withMode === withMode && DESCRIPTOR.test(one.from));
    if (group.length > 0) await copyAttributes(group, withMode);
  }
}

/**
 * Names both files by descriptors of this process, so that neither can be exchanged: a private directory holds a link to each
 * target descriptor, under the name of its source descriptor.
 */
async function copyAttributes(group: readonly Replacement[], withMode: boolean): Promise<void> {
  const links = mkdtempSync(join(tmpdir(), 'orch-attributes-'));
  try {
    for (const { from, to } of group) {
      const [, descriptors, name = ''] = DESCRIPTOR.exec(from) ?? [];
      symlinkSync(`${descriptors}${to}`, join(links, name));
    }
    const without = `timestamps,ownership${withMode ? '' : ',mode'}`;
    const options = ['--attributes-only', '--preserve=all', `--no-preserve=${without}`, '-t', links, '--'];
    // Without a mode to copy, cp sets one by its umask.
    await run('sh', ['-c', 'umask 077; exec cp "$@"', 'cp', ...options, ...group.map(({ from }) => from)]);
  } finally {
    rmSync(links, { recursive: true, force: true });
  }
}

const run = (program: string, args: readonly string[]): Promise<void> =>
  new Promise((resolve) => {
    execFile(program, [...args], { timeout: TIMEOUT }, () => resolve());
  });
