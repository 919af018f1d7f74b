/** The private data directory of a program: mode 0700, locked by one process at a time. */
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';

const LOCK = 'lock';
const ATTEMPTS = 5;

export interface DataDirectory {
  readonly path: string;
  /** Releases the lock; safe to call twice. */
  release(): void;
}

/** The process that holds the lock of a directory. */
interface Holder {
  readonly pid: number;
  /** Boot id and start time, which distinguish a process from a later one with the same pid; null where unknown. */
  readonly start: string | null;
  /** Name that the process passed, such as `orch serve`; null in a lock of an older release. */
  readonly program: string | null;
}

/**
 * Creates the directory when it is missing, denies access to other users, and locks it.
 * @param program name of this program, such as `orch serve`, shown in the lock and in messages
 * @throws Fault `data_dir_locked` with `pid` and `program` of the holder, `data_dir_invalid` when it cannot be used
 */
export function holdDataDirectory(path: string, program: string): DataDirectory {
  prepare(path);
  const lock = join(path, LOCK);
  const me: Holder = { pid: process.pid, start: processOf(process.pid)?.start ?? null, program };
  let own = `${lock}.${process.pid}`;
  try {
    own = writeOwn(own, me);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (takeLock(own, lock)) {
        sweepNamed(path, own);
        return { path, release: () => releaseLock(lock, me) };
      }
      const holder = readHolder(lock);
      if (holder !== null && isAlive(holder)) {
        throw lockedBy(path, holder, program);
      }
      clearStale(lock, `${own}.stale`);
    }
    throw new Fault('data_dir_locked', `${path} is taken by other processes again and again`);
  } catch (error) {
    throw error instanceof Fault ? error : unusable(path, error);
  } finally {
    if (!isNamed(own) || readHolder(lock)?.pid !== me.pid) rmSync(own, { force: true });
  }
}

/**
 * Writes the holder into a file of this process and returns its path. On a full disk the file stays empty and its name
 * carries the holder, because a name needs no space; that file then stays beside the lock.
 */
function writeOwn(own: string, me: Holder): string {
  try {
    writeFileSync(own, JSON.stringify(me), { mode: 0o600 });
    return own;
  } catch (error) {
    if (!['ENOSPC', 'EDQUOT'].includes(systemCodeOf(error) ?? '')) throw error;
    const named = join(dirname(own), nameOf(me));
    closeSync(openSync(own, 'w', 0o600));
    renameSync(own, named);
    return named;
  }
}

const NAMED = /^lock\.of-(\d+)-([^@]*)(?:@(.*))?$/;
const nameOf = ({ pid, start, program }: Holder): string =>
  `${LOCK}.of-${pid}-${encodeURIComponent(start ?? '')}@${encodeURIComponent(program ?? '')}`;
const isNamed = (path: string): boolean => NAMED.test(basename(path));

/** Removes the named files of processes that held the directory while its disk was full. */
function sweepNamed(directory: string, own: string): void {
  for (const name of readdirSync(directory)) {
    if (NAMED.test(name) && name !== basename(own)) rmSync(join(directory, name), { force: true });
  }
}

/** Returns the holder in the other hard link's name of an empty lock; null without one. */
function namedHolder(lock: string): Holder | null {
  const { ino } = statSync(lock);
  for (const name of readdirSync(dirname(lock))) {
    const [, pid, start = '', program = ''] = NAMED.exec(name) ?? [];
    if (pid === undefined || statSync(join(dirname(lock), name), { throwIfNoEntry: false })?.ino !== ino) continue;
    return { pid: Number(pid), start: decodeURIComponent(start) || null, program: decodeURIComponent(program) || null };
  }
  return null;
}

/** Returns the process that holds the directory now, or null. */
export function holderOf(path: string): Holder | null {
  const holder = readHolder(join(path, LOCK));
  return holder !== null && isAlive(holder) ? holder : null;
}

/** Works like `mkdir -p`. Node's recursive `mkdir` never ends below a directory such as /proc. */
function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  makeDirectory(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw error;
  }
}

function prepare(path: string): void {
  try {
    makeDirectory(resolve(path));
    const stats = statSync(path);
    const user = process.geteuid?.();
    if (!stats.isDirectory()) throw new Fault('data_dir_invalid', `${path} is not a directory`);
    if (user !== undefined && stats.uid !== user) {
      throw new Fault('data_dir_invalid', `${path} belongs to user ${stats.uid}, not to user ${user} who runs this`, {
        hint: 'choose another directory with --data-dir, or give it to this user',
      });
    }
    if (user !== undefined && (stats.mode & 0o077) !== 0) chmodSync(path, 0o700);
  } catch (error) {
    throw error instanceof Fault ? error : unusable(path, error);
  }
}

/** Creates the lock as a hard link: only one process succeeds, and the file is complete. */
function takeLock(own: string, lock: string): boolean {
  try {
    linkSync(own, lock);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Removes the lock of a dead holder. Restores a lock that a living process created in the meantime. */
function clearStale(lock: string, grave: string): void {
  try {
    renameSync(lock, grave);
    const holder = readHolder(grave);
    if (holder !== null && isAlive(holder)) linkSync(grave, lock);
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT' && systemCodeOf(error) !== 'EEXIST') throw error;
  } finally {
    rmSync(grave, { force: true });
  }
}

function releaseLock(lock: string, me: Holder): void {
  const holder = readHolder(lock);
  if (holder?.pid !== me.pid || holder.start !== me.start) return;
  rmSync(lock, { force: true });
  rmSync(join(dirname(lock), nameOf(me)), { force: true });
}

function readHolder(lock: string): Holder | null {
  try {
    const text = readFileSync(lock, 'utf8');
    if (text === '') return namedHolder(lock);
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('pid' in value) || typeof value.pid !== 'number') return null;
    return {
      pid: value.pid,
      start: 'start' in value && typeof value.start === 'string' ? value.start : null,
      program: 'program' in value && typeof value.program === 'string' ? value.program : null,
    };
  } catch {
    return null;
  }
}

function isAlive({ pid, start }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (systemCodeOf(error) === 'ESRCH') return false;
  }
  const found = processOf(pid);
  return found === null || (!found.hasEnded && (start === null || found.start === start));
}

/**
 * Reads a process from Linux's /proc; null on other systems. `start` is boot id and start time, because pids are reused.
 * A finished process keeps its pid until its parent waits for it, which some parents never do.
 */
function processOf(pid: number): { readonly start: string; readonly hasEnded: boolean } | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may contain spaces. After it: state, 18th field number of threads, 20th start time.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, threads, start] = [fields[0], fields[17], fields[19]];
    if (state === undefined || start === undefined) return null;
    // A remaining thread may still be writing.
    return { start: `${boot}/${start}`, hasEnded: 'ZX'.includes(state) && Number(threads) <= 1 };
  } catch {
    return null;
  }
}

/** @param program the program that wants the directory */
function lockedBy(path: string, { pid, program: holding }: Holder, program: string): Fault {
  const named = holding === null ? '' : ` (${holding})`;
  return new Fault('data_dir_locked', `${path} is in use by process ${pid}${named}`, {
    hint: `stop that ${holding ?? program} first, or give this one a --data-dir of its own`,
    data: { pid, program: holding },
  });
}

function unusable(path: string, cause: unknown): Fault {
  const isFull = ['ENOSPC', 'EDQUOT'].includes(systemCodeOf(cause) ?? '');
  const hint = isFull
    ? 'free some space on its disk'
    : 'choose another directory with --data-dir, or make this one writable for this user';
  return new Fault('data_dir_invalid', `cannot use ${path} as data directory: ${messageOf(cause)}`, { cause, hint });
}
