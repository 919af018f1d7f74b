/** The private directory of a long-running program: 0700, and held by one process at a time. */
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
  /** Gives the directory free; safe to call twice. */
  release(): void;
}

/** The process that holds a directory. */
export interface Holder {
  readonly pid: number;
  /** Distinguishes a process from a later one with the same id; null where the system does not say. */
  readonly start: string | null;
  /** The name that the process passed, such as `orch serve`; null in a lock of an older program. */
  readonly program: string | null;
}

/**
 * Makes the directory when it is missing, closes it to other users, and locks it.
 * @param program the name of this program, such as `orch serve`, which the lock and messages show
 * @throws Fault `data_dir_locked` with `pid` and `program` of the process that holds it, `data_dir_invalid` when it cannot be used
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
 * Writes who this process is into a file of its own, and returns its path. On a full disk the file stays empty and its name
 * says it, for that needs no room; it is kept beside the lock then.
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

/** Removes what processes have left that held the directory while its disk was full. */
function sweepNamed(directory: string, own: string): void {
  for (const name of readdirSync(directory)) {
    if (NAMED.test(name) && name !== basename(own)) rmSync(join(directory, name), { force: true });
  }
}

/** The holder that an empty lock's other name says; null when it has none. */
function namedHolder(lock: string): Holder | null {
  const { ino } = statSync(lock);
  for (const name of readdirSync(dirname(lock))) {
    const [, pid, start = '', program = ''] = NAMED.exec(name) ?? [];
    if (pid === undefined || statSync(join(dirname(lock), name), { throwIfNoEntry: false })?.ino !== ino) continue;
    return { pid: Number(pid), start: decodeURIComponent(start) || null, program: decodeURIComponent(program) || null };
  }
  return null;
}

/** The process that holds a directory now, or null. */
export function holderOf(path: string): Holder | null {
  const holder = readHolder(join(path, LOCK));
  return holder !== null && isAlive(holder) ? holder : null;
}

/** Like `mkdir -p`. Node's own recursion never ends below a directory that cannot hold any, such as /proc. */
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

/** A hard link is made by one process only, and always to a whole file. */
function takeLock(own: string, lock: string): boolean {
  try {
    linkSync(own, lock);
    return true;
  } catch (error) {
    if (systemCodeOf(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Takes a dead holder's lock away; a lock that a living process made in the meantime is put back. */
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
  return found === null || (!found.isOver && (start === null || found.start === start));
}

/**
 * A process as Linux tells of it; null elsewhere. `start` is boot and start time: ids are used again, start times are not.
 * One that is over keeps its id until its parent asks for its status, which some never do.
 */
function processOf(pid: number): { readonly start: string; readonly isOver: boolean } | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold spaces; behind it the state, as the 18th field the threads, as the 20th the start time.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, threads, start] = [fields[0], fields[17], fields[19]];
    if (state === undefined || start === undefined) return null;
    // While a thread of it is left, that may still be writing.
    return { start: `${boot}/${start}`, isOver: 'ZX'.includes(state) && Number(threads) <= 1 };
  } catch {
    return null;
  }
}

/** @param program the one that wants the directory */
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
