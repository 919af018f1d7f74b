/** Copies files of another machine to this one. */
import { mkdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, posix, resolve } from 'node:path';
import { isEntryName, nameBytes } from '../../copy/copy-frames.js';
import { HeldDirectory, reasonOfError } from '../../copy/held-directory.js';
import { type PartialFile, removePartials } from '../../copy/incoming-file.js';
import { receiveEntries } from '../../copy/receive-entries.js';
import { Fault, isFault, systemCodeOf } from '../../kernel/fault.js';
import type { CopyRun, CopyWork } from './copy-run.js';
import { type CopySession, requireReady } from './copy-session.js';

export interface DownloadOptions {
  /** Paths of the machine. */
  readonly paths: readonly string[];
  readonly place: LocalPlace;
  readonly recursive: boolean;
  readonly preserve: boolean;
}

/** Where a copy arrives on this machine: a directory, and the name in it; null when each source keeps its own. */
export interface LocalPlace {
  readonly root: string;
  readonly name: string | null;
}

export class Download implements CopyWork {
  readonly direction = 'read';
  readonly paths: readonly string[];
  private readonly options: DownloadOptions;
  /** Incomplete files of lost sessions. */
  private readonly partials: PartialFile[] = [];

  constructor(options: DownloadOptions) {
    this.options = options;
    this.paths = options.paths;
  }

  async copy(session: CopySession, run: CopyRun): Promise<void> {
    const { paths } = this.options;
    const { progress } = run;
    for (; progress.source < paths.length; progress.source += 1) {
      try {
        await this.path(session, run);
      } catch (error) {
        if (!isFault(error, 'copy_refused')) throw error;
        run.fail(nameBytes(paths[progress.source] ?? ''), nameBytes(error.message));
      }
      progress.after = null;
    }
  }

  async close(): Promise<void> {
    removePartials(this.partials.splice(0));
  }

  private async path(session: CopySession, run: CopyRun): Promise<void> {
    const { paths, place, recursive, preserve } = this.options;
    const { progress } = run;
    const path = paths[progress.source] ?? '';
    const connection = session.connect(progress.source);
    const { out, reader, finish } = connection;
    await out.write({ type: 'read', recursive, after: progress.after, resume: run.isResumed, whole: true });
    await requireReady(connection);
    const root = await HeldDirectory.open(place.root);
    let isRootKept = false;
    try {
      const isDone = await receiveEntries({
        ...{ reader, out, root, preserve, id: run.id, umask: process.umask() },
        name: nameBytes(place.name ?? nameOf(path)),
        onBytes: (bytes) => run.bytes(bytes),
        onFile: (file, sha256, bytes) => run.file(file, sha256, bytes),
        onFailed: (file, reason) => run.fail(file, reason),
        onPosition: (position) => {
          progress.after = position;
        },
        onPartial: (file) => {
          isRootKept = file.directory === root;
          this.partials.push(isRootKept ? { ...file, close: () => root.close() } : file);
        },
      });
      if (!isDone) throw new Fault('unreachable', 'the machine has ended the copy');
      await finish();
    } finally {
      if (!isRootKept) root.close();
    }
  }
}

/** Returns the name that a copied path has here. The machine has no say in it. */
function nameOf(path: string): string {
  const name = posix.basename(posix.normalize(path));
  if (isEntryName(nameBytes(name))) return name;
  throw new Fault('copy_refused', 'it has no name of its own: name directories below it');
}

/** Finds where copies of one machine arrive. Throws `usage` for a target that cannot be. @param isMany several sources */
export async function localPlace(target: string, isMany: boolean): Promise<LocalPlace> {
  try {
    const real = await realpath(target);
    if ((await stat(real)).isDirectory()) return { root: real, name: null };
    if (isMany || /[/\\]$/.test(target)) throw noDirectory(target, 'it is no directory');
    return { root: dirname(real), name: basename(real) };
  } catch (error) {
    if (isFault(error)) throw error;
    if (systemCodeOf(error) !== 'ENOENT' || isMany || /[/\\]$/.test(target)) {
      throw noDirectory(target, reasonOfError(error));
    }
    const full = resolve(target);
    try {
      return { root: await realpath(dirname(full)), name: basename(full) };
    } catch (failure) {
      throw noDirectory(dirname(target), reasonOfError(failure));
    }
  }
}

/** Makes `DIR/NAME` for the copies of one of several machines. Throws `usage`. */
export async function placeOfMachine(target: string, name: string): Promise<LocalPlace> {
  const { root, name: none } = await localPlace(target, true);
  if (none !== null || !isEntryName(nameBytes(name))) throw noDirectory(target, 'it is no directory');
  const held = await HeldDirectory.open(root);
  try {
    await mkdir(held.path(name), { mode: 0o777 }).catch((error: unknown) => {
      if (systemCodeOf(error) !== 'EEXIST') throw noDirectory(join(target, name), reasonOfError(error));
    });
    held.enter(nameBytes(name)).close();
  } catch (error) {
    throw isFault(error) ? error : noDirectory(join(target, name), reasonOfError(error));
  } finally {
    held.close();
  }
  return { root: join(root, name), name: null };
}

const noDirectory = (path: string, reason: string): Fault =>
  new Fault('usage', `cannot copy to ${path}: ${reason}`, { hint: 'make the directory first, or name another' });
