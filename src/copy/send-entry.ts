/** Sends one entry with all below it, in the order of the bytes of its names, and waits for no answer on the way. */
import { createHash, type Hash, hash } from 'node:crypto';
import { closeSync, constants, fstatSync, readlinkSync, readSync, type Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { COPY_LIMITS, type CopyWriter, type Position, type WholeFile } from './copy-frames.js';
import { type HeldDirectory, reasonOfError } from './held-directory.js';
import type { Replies, SentEntry } from './replies.js';
import { TimeSlices } from './time-slices.js';

export interface SendOptions {
  readonly out: CopyWriter;
  readonly replies: Replies;
  readonly recursive: boolean;
  /** True when the receiver takes small files in one frame. */
  readonly whole: boolean;
  /** Number of the source in the copy, and the name that stands for it in paths. */
  readonly source: number;
  readonly label: string;
  /** True until the first file of a copy that goes on has asked how much of it is there. Shared by all sources. */
  readonly resume: { isPending: boolean };
  /** Everything up to this place is dealt with. */
  readonly after: Position | null;
  /** Counts bytes that were read. */
  readonly onBytes: (bytes: number) => void;
  /** An entry cannot be sent. */
  readonly onFailed: (path: string, reason: string) => void;
}

const ZEROS = Buffer.alloc(COPY_LIMITS.data);

/** Sends the entry with this name. @param name one character for each byte */
export async function sendEntry(directory: HeldDirectory, name: string, options: SendOptions): Promise<void> {
  const { after } = options;
  if (after?.isDone && after.path.length === 0) return;
  await new Sender(options).visit(directory, { name, names: [], path: options.label }, after);
}

interface Entry {
  readonly name: string;
  /** Names below the copied entry. */
  readonly names: readonly string[];
  readonly path: string;
}

class Sender {
  private readonly options: SendOptions;
  private readonly slices = new TimeSlices();

  constructor(options: SendOptions) {
    this.options = options;
  }

  async visit(directory: HeldDirectory, entry: Entry, after: Position | null): Promise<void> {
    await this.slices.pause();
    let stats: Stats | null;
    try {
      stats = directory.look(entry.name);
    } catch (error) {
      return this.fail(entry, reasonOfError(error));
    }
    if (stats === null) return this.fail(entry, 'no such file or directory');
    if (stats.isDirectory()) return this.directory(directory, entry, after);
    if (stats.isFile()) return this.file(directory, stats, entry);
    if (stats.isSymbolicLink()) return this.link(directory, entry);
    return this.fail(entry, `${kindOf(stats)} is not copied`);
  }

  private async directory(parent: HeldDirectory, entry: Entry, after: Position | null): Promise<void> {
    const { out, recursive, replies, source } = this.options;
    const { name, names, path } = entry;
    if (!recursive) return this.fail(entry, 'it is a directory: copy it with --recursive');
    if (names.length >= COPY_LIMITS.depth) return this.fail(entry, `more than ${COPY_LIMITS.depth} directories deep`);
    let held: HeldDirectory | null = null;
    try {
      let children: readonly string[];
      try {
        held = parent.enter(name);
        children = await held.names();
      } catch (error) {
        return await this.fail(entry, reasonOfError(error));
      }
      const { mode, mtimeMs: mtime } = held.stats;
      await replies.expect({ source, path, position: { path: names, isDone: false }, content: null });
      await out.write({ type: 'dir', name, mode: mode & 0o7777, mtime });
      for (const child of children) {
        const rest = restOf(after, child);
        if (rest === 'skip') continue;
        await this.visit(held, { name: child, names: [...names, child], path: `${path}/${child}` }, rest);
      }
      await replies.expect({ source, path, position: { path: names, isDone: true }, content: null });
      await out.write({ type: 'up' });
    } finally {
      held?.close();
    }
  }

  private async link(directory: HeldDirectory, entry: Entry): Promise<void> {
    const { out, replies, source } = this.options;
    let target: string;
    try {
      target = readlinkSync(directory.path(entry.name), { encoding: 'buffer' }).toString('latin1');
    } catch (error) {
      return this.fail(entry, reasonOfError(error));
    }
    await replies.expect({ source, path: entry.path, position: { path: entry.names, isDone: true }, content: null });
    await out.write({ type: 'link', name: entry.name, target });
  }

  private async file(directory: HeldDirectory, { size }: Stats, entry: Entry): Promise<void> {
    if (size <= COPY_LIMITS.whole && this.options.whole && !this.options.resume.isPending) {
      let file: WholeFile | null;
      try {
        file = readWhole(directory, entry.name);
      } catch (error) {
        return this.fail(entry, reasonOfError(error));
      }
      if (file !== null) return this.whole(file, entry);
    }
    let handle: FileHandle;
    try {
      handle = await directory.open(entry.name, constants.O_RDONLY);
    } catch (error) {
      return this.fail(entry, reasonOfError(error));
    }
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) return await this.fail(entry, `${kindOf(stats)} is not copied`);
      await this.content(handle, stats, entry);
    } finally {
      await handle.close();
    }
  }

  private async whole(file: WholeFile, { names, path }: Entry): Promise<void> {
    const { out, replies, source, onBytes } = this.options;
    const { length } = file.bytes;
    const content = { sha256: file.sha256, bytes: length };
    await replies.expect({ source, path, position: { path: names, isDone: true }, content });
    await out.write(file);
    onBytes(length);
  }

  private async content(handle: FileHandle, stats: Stats, entry: Entry): Promise<void> {
    const { out, replies, source, onBytes } = this.options;
    const { name, names, path } = entry;
    const sent: SentEntry = { source, path, position: { path: names, isDone: true }, content: null };
    const number = await replies.expect(sent);
    const resume = this.options.resume.isPending;
    this.options.resume.isPending = false;
    await out.write({ type: 'file', name, mode: stats.mode & 0o7777, mtime: stats.mtimeMs, resume });
    const hash = createHash('sha256');
    let reason: string | null = null;
    try {
      let offset = resume ? await this.hashUntilResumed(handle, hash) : 0;
      for (;;) {
        if (replies.isRefused(number)) break;
        const bytes = await read(handle, offset, COPY_LIMITS.data);
        offset += bytes.length;
        if (bytes.length === 0) {
          sent.content = { sha256: hash.digest('hex'), bytes: offset };
          break;
        }
        hash.update(bytes);
        onBytes(bytes.length);
        const isHole = bytes.equals(ZEROS.subarray(0, bytes.length));
        await out.write(isHole ? { type: 'hole', length: bytes.length } : { type: 'data', bytes });
        // A file of a few bytes needs no second look for its end.
        if (bytes.length < COPY_LIMITS.data && offset === stats.size) {
          sent.content = { sha256: hash.digest('hex'), bytes: offset };
          break;
        }
      }
    } catch (error) {
      if (!isSystemError(error)) throw error;
      reason = reasonOfError(error);
    }
    await out.write({ type: 'end', sha256: sent.content?.sha256 ?? null });
    if (reason !== null) await this.fail(entry, reason);
  }

  /** Hashes the part that the receiver has already. Returns where the rest begins. */
  private async hashUntilResumed(handle: FileHandle, hash: Hash): Promise<number> {
    const there = await this.options.replies.at();
    let offset = 0;
    while (offset < there) {
      const bytes = await read(handle, offset, Math.min(COPY_LIMITS.data, there - offset));
      if (bytes.length === 0) break;
      hash.update(bytes);
      offset += bytes.length;
    }
    return offset;
  }

  private async fail({ path }: Entry, reason: string): Promise<void> {
    this.options.onFailed(path, reason);
    await this.options.out.write({ type: 'failed', path, reason });
  }
}

/** Room for a small file and one more byte, which shows that it has grown. The contents are undefined between two calls. */
const ROOM = Buffer.allocUnsafe(COPY_LIMITS.whole + 1);

/** Reads a small file. Returns null if it is none, or one of zeros, which is sent as a hole. */
function readWhole(directory: HeldDirectory, name: string): WholeFile | null {
  const fd = directory.openNow(name, constants.O_RDONLY);
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) return null;
    let length = 0;
    // A file of the size that it says needs no second call to find its end.
    for (let isEnd = false; !isEnd; ) {
      const count = readSync(fd, ROOM, length, ROOM.length - length, length);
      length += count;
      if (length > COPY_LIMITS.whole) return null;
      isEnd = count === 0 || length === stats.size;
    }
    const bytes = Buffer.from(ROOM.subarray(0, length));
    if (bytes[0] === 0 && bytes.equals(ZEROS.subarray(0, length))) return null;
    const sha256 = hash('sha256', bytes);
    return { type: 'whole', name, mode: stats.mode & 0o7777, mtime: stats.mtimeMs, sha256, bytes };
  } finally {
    closeSync(fd);
  }
}

async function read(handle: FileHandle, offset: number, most: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(most);
  const { bytesRead } = await handle.read(buffer, 0, most, offset);
  return buffer.subarray(0, bytesRead);
}

const isSystemError = (error: unknown): boolean => error instanceof Error && 'syscall' in error;

/** Returns what of a resumed copy is left of a child. */
function restOf(after: Position | null, child: string): Position | null | 'skip' {
  const [first, ...path] = after?.path ?? [];
  if (after === null || first === undefined || child > first) return null;
  if (child < first || (path.length === 0 && after.isDone)) return 'skip';
  return { path, isDone: after.isDone };
}

function kindOf(stats: Stats): string {
  if (stats.isFIFO()) return 'a named pipe';
  if (stats.isSocket()) return 'a socket';
  return stats.isBlockDevice() || stats.isCharacterDevice() ? 'a device' : 'something that is no file';
}
