/** Access lists and extended attributes, which Node can neither read nor set: with `ls` and `cp` of GNU. */
import { type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process';
import { chmodSync, closeSync, constants, openSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import type { HeldPrograms } from './held-programs.js';
import { environmentOf, findProgram } from './launch.js';
import type { HeldEntry } from './safe-walk.js';
import type { ScriptDirectories, ScriptDirectory } from './script-directory.js';

/** Milliseconds for one program. */
const TIMEOUT = 30_000;

/** Finds and removes access lists. Keep one for each run: it remembers directories that had none. */
export class AccessLists {
  private readonly workplaces: ScriptDirectories;
  private readonly held: HeldPrograms | undefined;
  private readonly clean = new Set<string>();

  constructor(workplaces: ScriptDirectories, held?: HeldPrograms) {
    this.workplaces = workplaces;
    this.held = held;
  }

  /** Remembers a directory that has no list for new entries. */
  remember({ dev, ino }: Stats): void {
    this.clean.add(`${dev}:${ino}`);
  }

  /** Returns what `findAccessLists` returns. */
  find(paths: readonly string[]): readonly boolean[] | null {
    return findAccessLists(paths, this.held);
  }

  isRemembered({ dev, ino }: Stats): boolean {
    return this.clean.has(`${dev}:${ino}`);
  }

  /**
   * Gives an entry exactly a mode, and removes its access list and, of a directory, the one for new entries. Returns false where
   * the system cannot do that.
   * @param entry reached by descriptor, so that it cannot be exchanged
   */
  remove(entry: HeldEntry, mode: number): boolean {
    if (process.platform !== 'linux') return false;
    let workplace: ScriptDirectory | null = null;
    try {
      workplace = this.workplaces.open();
      const isDirectory = entry.stats.isDirectory();
      const model = isDirectory ? workplace.path : modelFile(workplace);
      chmodSync(model, mode);
      const words = ['--attributes-only', '--preserve=mode', ...(isDirectory ? ['--recursive'] : [])];
      // The model is empty, so that nothing but its mode is copied.
      const ended = runNow('cp', [...words, '--no-target-directory', '--', model, throughLink(entry)], this.held);
      return ended?.status === 0;
    } catch {
      return false;
    } finally {
      if (workplace !== null) removeModel(workplace);
    }
  }
}

function modelFile(workplace: ScriptDirectory): string {
  const path = join(workplace.path, 'model');
  closeSync(openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600));
  return path;
}

function removeModel(workplace: ScriptDirectory): void {
  try {
    chmodSync(workplace.path, 0o700);
  } finally {
    workplace.remove();
  }
}

/** Returns a path to a held directory itself; the path of its descriptor is a link to it. */
const throughLink = ({ at, stats }: HeldEntry): string => (stats.isDirectory() ? `${at}/.` : at);

/**
 * Returns for each path whether it has an access list, or gives one to new entries. Null where the system does not say. Follows a
 * link at the end, such as that of a descriptor.
 */
export function findAccessLists(paths: readonly string[], held?: HeldPrograms): readonly boolean[] | null {
  if (process.platform !== 'linux') return null;
  const found = runNow('ls', ['-dlnLU', '--quoting-style=c', '--', ...paths], held);
  if (found?.status !== 0) return null;
  const lines = found.stdout.split('\n').slice(0, -1);
  const marks = lines.flatMap((line) => /^[a-z-]{10}([ .+])/i.exec(line)?.[1] ?? []);
  return marks.length === paths.length ? marks.map((mark) => mark === '+') : null;
}

function runNow(name: string, args: readonly string[], held?: HeldPrograms): SpawnSyncReturns<string> | null {
  const env = environmentOf({});
  const program = find(name, held);
  if (program === undefined) return null;
  return spawnSync(program, [...args], {
    env,
    cwd: '/',
    encoding: 'utf8',
    timeout: TIMEOUT,
    maxBuffer: 64 * 1024 ** 2,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

function find(name: string, held: HeldPrograms | undefined): string | undefined {
  const program = findProgram(name, environmentOf({}));
  return typeof program === 'string' ? program : held?.pathOf(name);
}

/** Two open files: the replaced one, and the new one. */
export interface Replacement {
  /** Path `/proc/PID/fd/N` of this process; other forms are ignored. */
  readonly from: string;
  /** A descriptor. */
  readonly to: number;
  /** False to leave mode and access list out. */
  readonly withMode: boolean;
}

const DESCRIPTOR = /^\/proc\/\d+\/fd\/(\d+)$/;

/**
 * Copies access lists, extended attributes and security contexts with one `cp` for all files. Best effort: file systems and
 * versions of `cp` without support keep nothing. Leaves the owners, wrong modes, and copied capabilities: the caller sets owner
 * and mode afterwards.
 */
export async function keepAttributes(replacements: readonly Replacement[], held?: HeldPrograms): Promise<void> {
  for (const withMode of [true, false]) {
    const group = replacements.filter((one) => one.withMode === withMode && DESCRIPTOR.test(one.from));
    if (group.length > 0) await copyAttributes(group, withMode, held);
  }
}

/**
 * Names both files by descriptors, so that neither can be exchanged. The program gets each replaced file under the number that
 * the new file has here: `cp` then finds its target under the name of its source, and no directory has to be made.
 */
async function copyAttributes(
  group: readonly Replacement[],
  withMode: boolean,
  held: HeldPrograms | undefined,
): Promise<void> {
  const env = environmentOf({});
  const program = find('cp', held);
  if (program === undefined) return;
  const stdio: ('ignore' | number)[] = ['ignore', 'ignore', 'ignore'];
  for (const { from, to } of group) {
    while (stdio.length <= to) stdio.push('ignore');
    stdio[to] = Number(DESCRIPTOR.exec(from)?.[1]);
  }
  const without = `timestamps,ownership${withMode ? '' : ',mode'}`;
  const options = ['--attributes-only', '--preserve=all', `--no-preserve=${without}`, '-t', `/proc/${process.pid}/fd`];
  const sources = group.map(({ to }) => `/proc/self/fd/${to}`);
  await new Promise<void>((resolve) => {
    const child = spawn(program, [...options, '--', ...sources], { env, cwd: '/', stdio, timeout: TIMEOUT });
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
}
