/**
 * Receives entries below a directory that is held open. The peer names one entry at a time, and links are never followed, so nothing
 * that it sends leaves the directory. A file appears under its name only when it is complete and its hash is right.
 */
import { hash } from 'node:crypto';
import { chmodSync, mkdirSync, renameSync, symlinkSync, utimesSync } from 'node:fs';
import {
  COPY_LIMITS,
  type CopyFrame,
  type CopyReader,
  type CopyWriter,
  type Position,
  violation,
  type WholeFile,
} from './copy-frames.js';
import { type HeldDirectory, reasonOfError } from './held-directory.js';
import { IncomingFile, type IncomingFileOptions, type PartialFile, removeNow, writeWhole } from './incoming-file.js';
import { TimeSlices } from './time-slices.js';

export interface ReceiveOptions {
  readonly reader: CopyReader;
  readonly out: CopyWriter;
  /** Owned by the caller. */
  readonly root: HeldDirectory;
  /** Name of the copied entry in `root`, whatever the peer calls it; null when frames of the peer name each source. */
  readonly name: string | null;
  /** ID of the copy, for the names of its temporary files. */
  readonly id: string;
  /** Keeps modes and times. */
  readonly preserve: boolean;
  readonly umask: number;
  /** Throws for a name in `root` that must not be written. */
  readonly permit?: (name: string) => void;
  readonly onBytes?: (bytes: number) => void;
  readonly onFile: (path: string, sha256: string, bytes: number) => void;
  readonly onFailed: (path: string, reason: string) => void;
  /** Everything up to this place is dealt with. */
  readonly onPosition?: (position: Position) => void;
  /** Takes over an incomplete file after a loss, with the directory that it is in. */
  readonly onPartial: (partial: PartialFile) => void;
}

interface Level {
  /** Null for a directory that could not be made. */
  readonly held: HeldDirectory | null;
  readonly name: string;
  readonly mode: number;
  readonly mtime: number;
  readonly isNew: boolean;
}

/** Entries after which the sender learns what is settled, although more has arrived. */
const SETTLE_AFTER = 128;

/** Receives until the peer is done. Returns false if it ended before that. Throws when the connection was lost, and `protocol_violation`. */
export async function receiveEntries(options: ReceiveOptions): Promise<boolean> {
  const receiver = new Receiver(options);
  try {
    return await receiver.run();
  } finally {
    await receiver.close();
  }
}

class Receiver {
  private readonly options: ReceiveOptions;
  private readonly levels: Level[] = [];
  private names: string[] = [];
  private top: string | null;
  private hasTop = false;
  private file: IncomingFile | null = null;
  /** True between a file and its end. */
  private isInFile = false;
  private entries = 0;
  private settled = 0;
  private told = 0;
  private isLost = true;
  private readonly slices = new TimeSlices();

  constructor(options: ReceiveOptions) {
    this.options = options;
    this.top = options.name;
  }

  async run(): Promise<boolean> {
    const { reader } = this.options;
    for (;;) {
      if (!reader.hasMore || this.settled - this.told >= SETTLE_AFTER) await this.tell();
      const frame = await reader.next();
      if (frame === null || frame.type === 'done') {
        this.isLost = false;
        if (frame === null) return false;
        if (this.levels.length > 0 || this.isInFile) throw violation('an end within an entry');
        await this.tell();
        return true;
      }
      await this.handle(frame);
      await this.slices.pause();
    }
  }

  async close(): Promise<void> {
    const directory = this.levels.at(-1)?.held ?? this.options.root;
    const isKept = this.file !== null && this.isLost && (await this.file.keep());
    if (this.file !== null && !isKept) await this.file.discard();
    const levels = this.levels.splice(0);
    if (isKept && this.file !== null) {
      // The directory of the file stays open for its removal.
      const isRoot = directory === this.options.root;
      const held = isRoot ? null : (levels.pop()?.held ?? null);
      this.options.onPartial({ directory, name: this.file.temporary, close: () => held?.close() });
    }
    for (const { held } of levels) held?.close();
  }

  private async handle(frame: CopyFrame): Promise<void> {
    if (this.isInFile && frame.type !== 'data' && frame.type !== 'hole' && frame.type !== 'end') {
      throw violation(`"${frame.type}" within a file`);
    }
    switch (frame.type) {
      case 'source':
        if (this.levels.length > 0) throw violation('a source within a directory');
        // With a fixed name there is one source, and what the peer calls it does not matter.
        if (this.options.name !== null) return;
        this.top = frame.name;
        this.hasTop = false;
        return;
      case 'dir':
        return this.directory(frame);
      case 'up':
        return this.up();
      case 'file':
        return this.begin(frame);
      case 'whole':
        return this.whole(frame);
      case 'data':
        return this.write(frame.bytes.length, frame.bytes);
      case 'hole':
        return this.write(frame.length, null);
      case 'end':
        return this.end(frame.sha256);
      case 'link':
        return this.link(frame);
      case 'failed':
        this.options.onFailed(frame.path, frame.reason);
        return;
      default:
        throw violation(`"${frame.type}" in the wrong place`);
    }
  }

  private async directory({ name: given, mode, mtime }: Extract<CopyFrame, { type: 'dir' }>): Promise<void> {
    if (this.levels.length >= COPY_LIMITS.depth) throw violation('directories that are too deep');
    const name = this.begun(given);
    const parent = this.parent();
    let held: HeldDirectory | null = null;
    let isNew = false;
    if (parent === null) await this.refuse('');
    else {
      try {
        this.permit(name);
        isNew = made(parent, name, this.ownMode(mode) | 0o700);
        held = parent.enter(name);
        // The process may have a stricter umask. Its own mode comes at the end, when nothing more is written.
        if (isNew) chmodSync(held.self, this.ownMode(mode) | 0o700);
      } catch (error) {
        await this.refuse(reasonOfError(error));
      }
    }
    this.levels.push({ held, name, mode, mtime, isNew });
    this.settle(false);
  }

  private async up(): Promise<void> {
    const level = this.levels.at(-1);
    if (level === undefined) throw violation('an end of a directory that was not begun');
    this.entries += 1;
    const { held, mode, mtime, isNew } = level;
    if (held === null) await this.refuse('');
    else {
      try {
        if (this.options.preserve || isNew) chmodSync(held.self, this.ownMode(mode));
        if (this.options.preserve) utimesSync(held.self, mtime / 1000, mtime / 1000);
      } catch (error) {
        await this.refuse(`mode and times: ${reasonOfError(error)}`);
      }
    }
    this.levels.pop();
    held?.close();
    this.settle(true);
    this.names.pop();
  }

  private async whole(frame: WholeFile): Promise<void> {
    const { bytes, sha256 } = frame;
    const name = this.begun(frame.name);
    const parent = this.parent();
    if (parent === null) await this.refuse('');
    else {
      try {
        this.permit(name);
        writeWhole(bytes, sha256, this.incoming(parent, name, frame));
        this.options.onBytes?.(bytes.length);
        this.options.onFile(this.path, sha256, bytes.length);
      } catch (error) {
        await this.refuse(reasonOfError(error));
      }
    }
    this.settle(true);
    this.names.pop();
  }

  private async begin(frame: Extract<CopyFrame, { type: 'file' }>): Promise<void> {
    const { name: given, resume } = frame;
    const name = this.begun(given);
    this.isInFile = true;
    const parent = this.parent();
    let offset = 0;
    if (parent === null) await this.refuse('');
    else {
      try {
        this.permit(name);
        this.file = new IncomingFile(this.incoming(parent, name, frame));
        offset = await this.file.open(resume);
      } catch (error) {
        this.file = null;
        await this.refuse(reasonOfError(error));
      }
    }
    if (resume) await this.options.out.write({ type: 'at', offset });
  }

  private incoming(
    directory: HeldDirectory,
    name: string,
    { mode, mtime }: Pick<WholeFile, 'mode' | 'mtime'>,
  ): IncomingFileOptions {
    const { id, preserve } = this.options;
    return {
      directory,
      name,
      temporary: temporaryName(`${id}\0${this.path}`),
      mode: this.ownMode(mode),
      keepsMode: !preserve,
      mtime: preserve ? mtime : null,
    };
  }

  private async write(length: number, bytes: Buffer | null): Promise<void> {
    if (!this.isInFile) throw violation('data outside a file');
    const { file } = this;
    if (file === null) return;
    try {
      await file.write(length, bytes);
      this.options.onBytes?.(length);
    } catch (error) {
      this.file = null;
      await file.discard();
      await this.refuse(reasonOfError(error));
    }
  }

  private async end(sha256: string | null): Promise<void> {
    if (!this.isInFile) throw violation('an end outside a file');
    const { file, path } = this;
    this.isInFile = false;
    this.file = null;
    if (file !== null && sha256 === null) await file.discard();
    else if (file !== null && sha256 !== null) {
      try {
        await file.finish(sha256);
        this.options.onFile(path, sha256, file.size);
      } catch (error) {
        await file.discard();
        await this.refuse(reasonOfError(error));
      }
    }
    this.settle(true);
    this.names.pop();
  }

  private async link({ name: given, target }: Extract<CopyFrame, { type: 'link' }>): Promise<void> {
    const name = this.begun(given);
    const parent = this.parent();
    if (parent === null) await this.refuse('');
    else {
      const temporary = temporaryName(`${this.options.id}\0${this.path}`);
      try {
        this.permit(name);
        if (parent.look(name)?.isDirectory() === true) throw Object.assign(new Error(), { code: 'EISDIR' });
        symlinkSync(Buffer.from(target, 'latin1'), parent.path(temporary));
        renameSync(parent.path(temporary), parent.path(name));
      } catch (error) {
        removeNow(parent, temporary);
        await this.refuse(reasonOfError(error));
      }
    }
    this.settle(true);
    this.names.pop();
  }

  /** Counts an entry, and returns the name that it gets here. */
  private begun(given: string): string {
    this.entries += 1;
    if (this.levels.length > 0) {
      this.names.push(given);
      return given;
    }
    if (this.top === null || this.hasTop) throw violation('an entry that was not asked for');
    this.hasTop = true;
    this.names = [this.top];
    return this.top;
  }

  /** Path of the current entry from its source on. */
  private get path(): string {
    return this.names.join('/');
  }

  /** Returns the directory of the current entry; null if it could not be made. */
  private parent(): HeldDirectory | null {
    const level = this.levels.at(-1);
    return level === undefined ? this.options.root : level.held;
  }

  private permit(name: string): void {
    if (this.levels.length === 0) this.options.permit?.(name);
  }

  private ownMode(mode: number): number {
    // Never a bit that gives the rights of the owner to others.
    return mode & 0o777 & (this.options.preserve ? 0o777 : ~this.options.umask);
  }

  private async refuse(reason: string): Promise<void> {
    if (reason !== '') this.options.onFailed(this.path, reason);
    await this.options.out.write({ type: 'refused', entry: this.entries, reason });
  }

  private settle(isDone: boolean): void {
    this.settled = this.entries;
    this.options.onPosition?.({ path: this.names.slice(1), isDone });
  }

  private async tell(): Promise<void> {
    if (this.told === this.settled) return;
    this.told = this.settled;
    await this.options.out.write({ type: 'settled', count: this.settled });
  }
}

/** Makes a directory. Returns false if there is one. */
function made(parent: HeldDirectory, name: string, mode: number): boolean {
  try {
    mkdirSync(parent.path(name), mode);
    return true;
  } catch (error) {
    const there = parent.look(name);
    if (there?.isDirectory() === true) return false;
    if (there?.isSymbolicLink() === true) throw Object.assign(new Error(), { code: 'ELOOP' });
    throw error;
  }
}

/** Name of the temporary file of an entry. A copy that goes on finds it again; nothing else can foresee it. */
const temporaryName = (salt: string): string => `.orch-cp-${hash('sha256', Buffer.from(salt, 'latin1')).slice(0, 24)}`;
