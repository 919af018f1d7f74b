/** A file that arrives: written beside its place under a temporary name with mode 0600, and renamed when it is complete. */
import { createHash, hash } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  renameSync,
  type Stats,
  unlinkSync,
  writeSync,
} from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { systemCodeOf } from '../kernel/fault.js';
import { COPY_LIMITS } from './copy-frames.js';
import type { HeldDirectory } from './held-directory.js';

export interface IncomingFileOptions {
  readonly directory: HeldDirectory;
  readonly name: string;
  /** Name of the temporary file. A copy that goes on finds it again; nothing else can foresee it. */
  readonly temporary: string;
  readonly mode: number;
  /** True to keep the mode of a file that is there. */
  readonly keepsMode: boolean;
  /** Milliseconds; null for now. */
  readonly mtime: number | null;
}

/** An incomplete file that waits for the rest. */
export interface PartialFile {
  readonly directory: HeldDirectory;
  readonly name: string;
  /** Releases the directory. */
  readonly close: () => void;
}

const NEW = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL;
const ZEROS = Buffer.alloc(COPY_LIMITS.data);
const IS_ROOT = process.geteuid?.() === 0;

export class IncomingFile {
  private readonly options: IncomingFileOptions;
  private readonly hash = createHash('sha256');
  private handle: FileHandle | null = null;
  private offset = 0;
  private endsWithHole = false;

  constructor(options: IncomingFileOptions) {
    this.options = options;
  }

  get temporary(): string {
    return this.options.temporary;
  }

  /** Bytes so far. */
  get size(): number {
    return this.offset;
  }

  /** Creates the temporary file, or goes on with that of the same copy. Returns how many bytes are there. */
  async open(resume: boolean): Promise<number> {
    const { directory, temporary } = this.options;
    if (resume && (await this.reopen())) return this.offset;
    try {
      this.handle = await directory.open(temporary, NEW, 0o600);
    } catch (error) {
      if (systemCodeOf(error) !== 'EEXIST') throw error;
      unlinkSync(directory.path(temporary));
      this.handle = await directory.open(temporary, NEW, 0o600);
    }
    return 0;
  }

  /** Writes bytes, or that many zeros as a hole. */
  async write(length: number, bytes: Buffer | null): Promise<void> {
    this.hash.update(bytes ?? ZEROS.subarray(0, length));
    this.endsWithHole = bytes === null;
    for (let at = 0; bytes !== null && at < length; ) {
      const { bytesWritten } = await this.opened.write(bytes, at, length - at, this.offset + at);
      at += bytesWritten;
    }
    this.offset += length;
  }

  /** Gives the file its mode, owner, times and name. Throws unless it has this hash. */
  async finish(sha256: string): Promise<void> {
    const handle = this.opened;
    if (this.hash.digest('hex') !== sha256) throw new Error(CHANGED);
    if (this.endsWithHole) await handle.truncate(this.offset);
    settle(handle.fd, this.options);
    await this.close();
  }

  /** Closes the file and leaves it for a copy that goes on. Returns false if nothing is worth keeping. */
  async keep(): Promise<boolean> {
    if (this.handle === null || this.offset === 0) return false;
    // Zeros at the end are not written yet.
    if (this.endsWithHole) await this.handle.truncate(this.offset).catch(() => undefined);
    await this.close();
    return true;
  }

  /** Removes the temporary file. */
  async discard(): Promise<void> {
    const { directory, temporary } = this.options;
    if (this.handle === null) return;
    await this.close();
    removeNow(directory, temporary);
  }

  private get opened(): FileHandle {
    if (this.handle === null) throw new Error('the file is not open');
    return this.handle;
  }

  private async close(): Promise<void> {
    const { handle } = this;
    this.handle = null;
    await handle?.close();
  }

  /** Opens what is there of the same copy. Returns false if there is nothing, or something that it did not make. */
  private async reopen(): Promise<boolean> {
    const { directory, temporary } = this.options;
    let handle: FileHandle;
    try {
      handle = await directory.open(temporary, constants.O_RDWR);
    } catch {
      return false;
    }
    if (!isOwn(await handle.stat())) {
      await handle.close();
      return false;
    }
    this.handle = handle;
    for (;;) {
      const buffer = Buffer.allocUnsafe(COPY_LIMITS.data);
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, this.offset);
      if (bytesRead === 0) return true;
      this.hash.update(buffer.subarray(0, bytesRead));
      this.offset += bytesRead;
    }
  }
}

/** Writes a small file with synchronous calls, and gives it its name. Throws unless the bytes have this hash; nothing is left then. */
export function writeWhole(bytes: Buffer, sha256: string, options: IncomingFileOptions): void {
  const { directory, temporary } = options;
  if (hash('sha256', bytes) !== sha256) throw new Error(CHANGED);
  let fd: number;
  try {
    fd = directory.openNow(temporary, NEW, 0o600);
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw error;
    unlinkSync(directory.path(temporary));
    fd = directory.openNow(temporary, NEW, 0o600);
  }
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, at);
    settle(fd, options);
  } catch (error) {
    removeNow(directory, temporary);
    throw error;
  } finally {
    closeSync(fd);
  }
}

const CHANGED = 'it changed while it was copied: copy it again';

/** Gives a complete temporary file its mode, owner, times and name. */
function settle(fd: number, { directory, name, temporary, mode, keepsMode, mtime }: IncomingFileOptions): void {
  const there = directory.look(name);
  if (there?.isDirectory() === true) throw Object.assign(new Error(), { code: 'EISDIR' });
  const old = there?.isFile() === true ? there : null;
  if (old !== null && IS_ROOT) fchownSync(fd, old.uid, old.gid);
  fchmodSync(fd, old !== null && keepsMode ? old.mode & 0o777 : mode);
  if (mtime !== null) futimesSync(fd, mtime / 1000, mtime / 1000);
  renameSync(directory.path(temporary), directory.path(name));
}

/** Removes a temporary file if it is there. One that cannot be removed is replaced by the copy that goes on. */
export function removeNow(directory: HeldDirectory, name: string): void {
  try {
    unlinkSync(directory.path(name));
  } catch {
    // It has its name already, or its directory is gone.
  }
}

const isOwn = (stats: Stats): boolean =>
  stats.isFile() &&
  stats.nlink === 1 &&
  (stats.mode & 0o777) === 0o600 &&
  (process.geteuid === undefined || stats.uid === process.geteuid());

/** Removes incomplete files, and releases their directories. One that was completed has its temporary name no more. */
export function removePartials(files: readonly PartialFile[]): void {
  for (const { directory, name, close } of files) {
    removeNow(directory, name);
    close();
  }
}
