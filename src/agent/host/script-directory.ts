/** Private directories for commands, with their scripts, input and output streams. */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemCodeOf } from '../../kernel/fault.js';
import { mayBeInUse, pidNamespace } from './alive.js';

/** In the agent's data directory. */
const DIRECTORY = 'scripts';
/** The temporary directory, and file systems in memory where it cannot be written. */
const TEMPORARY: readonly (() => string)[] = [tmpdir, () => '/run', () => '/dev/shm'];
/** Places for files of other users, which cannot enter the data directory: in memory where possible. */
const FOR_OTHERS: readonly (() => string)[] = [() => '/run', () => '/dev/shm', tmpdir];
/** `orch-PID-NAMESPACE-RANDOM`; earlier releases had no namespace. */
const PATTERN = /^orch-([0-9]+)-(?:([0-9]+)-)?[A-Za-z0-9]{6}$/;

export interface ScriptDirectory {
  readonly path: string;
  /** Removes the directory and everything in it. */
  remove(): void;
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

export class ScriptDirectories {
  private readonly dataDir: string | undefined;
  private readonly checked = new Set<string>();

  /** Removes workplaces of dead processes from the data directory, which only this agent uses, and those of other users. */
  constructor(dataDir: string | undefined) {
    this.dataDir = dataDir;
    if (dataDir === undefined) return;
    this.removeLeftovers(join(dataDir, DIRECTORY), () => true);
    if (process.geteuid?.() === 0) this.removeLeftovers('/run', (other) => other === pidNamespace());
  }

  /**
   * Opens a workplace whose files another user may open by name, but not list: in memory or, if that cannot be used, in the
   * temporary directory. Throws if all of them fail.
   */
  openForOthers(): ScriptDirectory {
    const opened = inFirst(FOR_OTHERS, (directory) => this.openIn(directory));
    chmodSync(opened.path, 0o711);
    return opened;
  }

  /**
   * Opens a workplace in the data directory or, if that cannot be used, in the temporary directory or in memory. Throws if all of
   * them fail.
   */
  open(): ScriptDirectory {
    const { dataDir } = this;
    const own = dataDir === undefined ? [] : [() => makeDirectory(join(dataDir, DIRECTORY))];
    return inFirst([...own, ...TEMPORARY], (directory) => this.openIn(directory));
  }

  private openIn(directory: string): ScriptDirectory {
    const namespace = pidNamespace();
    // A container may share the temporary directory with its host.
    this.removeLeftovers(directory, (other) => other === namespace);
    const path = mkdtempSync(join(directory, `orch-${process.pid}-${namespace}-`));
    return { path, remove: () => remove(path) };
  }

  /** Removes leftovers; checks each directory once. */
  private removeLeftovers(directory: string, isOurs: (namespace: number) => boolean): void {
    if (this.checked.has(directory)) return;
    this.checked.add(directory);
    for (const name of namesIn(directory)) {
      const [, owner, namespace = pidNamespace()] = PATTERN.exec(name) ?? [];
      if (owner !== undefined && isOurs(Number(namespace))) removeIfLeft(join(directory, name), Number(owner));
    }
  }
}

/** Makes a private directory in the temporary directory or, if that cannot be used, in memory. Throws if all of them fail. */
export const makeTemporaryDirectory = (prefix: string): string =>
  inFirst(TEMPORARY, (directory) => mkdtempSync(join(directory, prefix)));

/** Returns what `make` makes in the first place where it does not throw. Throws the first error if it throws in all of them. */
function inFirst<T>(places: readonly (() => string)[], make: (directory: string) => T): T {
  let first: unknown;
  for (const place of places) {
    try {
      return make(place());
    } catch (error) {
      // The next one may be on another file system.
      first ??= error;
    }
  }
  throw first;
}

/** Writes a file that only its owner can read, and returns its path. @param owner [default: the agent's user] */
export function writePrivately({ path }: ScriptDirectory, name: string, text: string, owner?: Owner): string {
  const file = join(path, name);
  const descriptor = openSync(file, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
  try {
    // An unusual umask removes even the owner's rights.
    fchmodSync(descriptor, 0o600);
    writeFileSync(descriptor, text);
    if (owner) fchownSync(descriptor, owner.uid, owner.gid);
  } finally {
    closeSync(descriptor);
  }
  return file;
}

function makeDirectory(path: string): string {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw error;
  }
  return path;
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function removeIfLeft(path: string, owner: number): void {
  try {
    const stats = lstatSync(path);
    const isOurs = stats.isDirectory() && (process.geteuid === undefined || stats.uid === process.geteuid());
    const isEarlier = stats.mtimeMs < Date.now() - process.uptime() * 1000;
    const isDead = owner === process.pid ? isEarlier : !mayBeInUse(owner);
    if (isOurs && isDead) remove(path);
  } catch {
    // Another process was faster.
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    // The next start removes it.
  }
}
