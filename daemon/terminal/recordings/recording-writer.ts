/**
 * Writes the recording of one session in the recording thread: appends complete lines and syncs about once a second. One loop at a
 * time works on the file. Errors stop the recording and are never thrown to the caller.
 */

import { isUtf8 } from 'node:buffer';
import type { FileHandle } from 'node:fs/promises';
import { messageOf, systemCodeOf } from '../../../src/kernel/fault.js';
import type { OutputStream } from '../../../src/terminal/frames.js';
import type { CastEncoder } from '../../../src/terminal/recording/cast-encoder.js';
import type { Core } from '../../core/core.js';
import type { LineMemory } from './line-memory.js';
import type { KeptOutput, RecordingEnd } from './recording.js';
import { RECORDING_LIMITS } from './recording-limits.js';

export interface WriterEvents {
  /** Output up to `offset` and `size` bytes of the file are durable: complete lines up to a checkpoint. */
  onDurable(offset: number, size: number): void;
  /** The recording stopped because of its size limit, the disk or an error. */
  onStopped(state: 'truncated' | 'failed', reason: string): void;
}

interface RecordingWriterOptions extends Pick<Core, 'clock'> {
  /** File, open for appending. */
  readonly file: FileHandle;
  /** Size of the file in bytes, all durable. */
  readonly size: number;
  readonly encoder: CastEncoder;
  /** Where the encoder puts its lines. */
  readonly memory: LineMemory;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly events: WriterEvents;
  /** Maximum size of the file in bytes. */
  readonly maxBytes: number;
  /** Kept output of a command on pipes; null for a terminal. */
  readonly kept: KeptOutput | null;
  /** Returns a description of the problem with the disk, or null; called periodically. */
  readonly diskProblem: () => Promise<string | null>;
  /** Returns the hex SHA-256 of the file, or null when it cannot be read. */
  readonly hashFile: () => Promise<string | null>;
}

type Stop = { readonly state: 'truncated' | 'failed'; readonly reason: string };

export class RecordingWriter {
  private readonly options: RecordingWriterOptions;
  private readonly encoder: CastEncoder;
  /** Monotonic time of the start of the recording in milliseconds. */
  private readonly start: number;
  /** Lines to be written. */
  private lines: Buffer[] = [];
  private linesLength = 0;
  /** Size of the complete lines in the file, and its durable part, in bytes. */
  private size: number;
  private storedSize: number;
  /** Size of the file after all lines are written, in bytes. */
  private plannedSize: number;
  private isSyncDue = false;
  private lastFlushed = -1;
  private readonly timers = new Map<'write' | 'sync', NodeJS.Timeout>();
  private work: Promise<void> = Promise.resolve();
  private isWorking = false;
  private stop: Stop | null = null;
  private isFailed = false;
  /** True when the file of a command has come to its limit, so that only sizes and hashes follow. */
  private isFull = false;
  private diskAsked: { readonly at: number; readonly size: number };
  private ending: Promise<RecordingEnd> | null = null;

  constructor(options: RecordingWriterOptions) {
    this.options = options;
    this.encoder = options.encoder;
    this.size = options.size;
    this.storedSize = options.size;
    this.plannedSize = options.size;
    const { clock, openedAt } = options;
    this.start = clock.monotonic() - Math.max(0, clock.now() - openedAt);
    this.diskAsked = { at: clock.monotonic(), size: options.size };
  }

  /** Records output as one event. Does not keep the buffer. */
  write(stream: OutputStream, bytes: Buffer): void {
    if (this.hasEnded || bytes.length === 0) return;
    const isKept = this.keeps(stream, bytes);
    this.add(isKept ? this.encoder.output(this.now(), stream, bytes) : this.encoder.omit(this.now(), stream, bytes));
    if (this.encoder.unchecked >= RECORDING_LIMITS.checkpoint) this.add(this.encoder.checkpoint(this.now()));
    const { kept, maxBytes } = this.options;
    if (this.plannedSize < maxBytes || this.isFull) return;
    const reason = `the recording has come to its limit of ${mebibytes(maxBytes)}`;
    if (kept === null) this.end({ state: 'truncated', reason });
    else {
      this.isFull = true;
      this.mark(`${reason}: only sizes and hashes of further output follow`);
    }
  }

  /** Returns whether output is kept. A stream of a command that was binary once stays so. */
  private keeps(stream: OutputStream, bytes: Buffer): boolean {
    const { kept } = this.options;
    if (kept === null) return true;
    if (this.isFull || kept === 'none') return false;
    return kept === 'all' || !(this.encoder.hasOmitted(stream) || isBinary(bytes));
  }

  resize(cols: number, rows: number): void {
    if (this.hasEnded) return;
    this.add(this.encoder.resize(this.now(), cols, rows));
  }

  mark(text: string): void {
    if (this.hasEnded) return;
    this.add(this.encoder.mark(this.now(), text));
  }

  /** Writes the rest and closes the file; never rejects. */
  close(status: number | null): Promise<RecordingEnd> {
    this.ending ??= this.finish(status);
    return this.ending;
  }

  /** Writes the rest and releases the file, which another writer continues; never rejects. */
  release(): Promise<RecordingEnd> {
    this.ending ??= this.leave();
    return this.ending;
  }

  private get hasEnded(): boolean {
    return this.stop !== null || this.ending !== null;
  }

  /** Returns the seconds since the start. */
  private now(): number {
    return Math.max(0, this.options.clock.monotonic() - this.start) / 1000;
  }

  private arm(name: 'write' | 'sync', delay: number): void {
    if (this.timers.has(name)) return;
    this.timers.set(
      name,
      setTimeout(() => {
        this.timers.delete(name);
        if (name === 'sync') this.isSyncDue = true;
        this.run();
      }, delay),
    );
  }

  private add(lines: readonly Buffer[]): void {
    this.push(lines);
    this.arm('sync', RECORDING_LIMITS.syncAfter);
    if (this.plannedSize - this.storedSize >= RECORDING_LIMITS.syncBytes) this.isSyncDue = true;
    if (this.linesLength >= RECORDING_LIMITS.writeBytes || this.isSyncDue) this.run();
    else this.arm('write', RECORDING_LIMITS.writeAfter);
  }

  private push(lines: readonly Buffer[]): void {
    for (const line of lines) {
      this.lines.push(line);
      this.linesLength += line.length;
      this.plannedSize += line.length;
    }
  }

  /** Starts the loop that works on the file, unless it runs. */
  private run(): void {
    if (this.isWorking || this.isFailed) return;
    this.isWorking = true;
    this.work = this.runAll();
  }

  /** Resolves when the loop is idle. */
  private async idle(): Promise<void> {
    while (this.isWorking) await this.work;
  }

  private async runAll(): Promise<void> {
    try {
      while (!this.isFailed && (this.lines.length > 0 || this.isSyncDue)) {
        if (this.isSyncDue) await this.sync();
        else await this.append();
      }
    } catch (error) {
      await this.fail(error);
    }
    this.isWorking = false;
  }

  private async append(): Promise<void> {
    const { lines } = this;
    const { memory } = this.options;
    const blocks = memory.takeBlocks();
    this.lines = [];
    this.linesLength = 0;
    try {
      await this.writeAll(lines);
    } finally {
      memory.release(blocks);
    }
  }

  private async writeAll(lines: readonly Buffer[]): Promise<void> {
    let rest = lines;
    // Counts only complete lines when a write ends inside a line.
    let torn = 0;
    for (let first = rest[0]; first !== undefined; first = rest[0]) {
      const { bytesWritten } = await this.options.file.writev([first.subarray(torn), ...rest.slice(1)]);
      torn += bytesWritten;
      let whole = 0;
      for (let line = rest[0]; line !== undefined && line.length <= torn; line = rest[whole]) {
        torn -= line.length;
        this.size += line.length;
        whole += 1;
      }
      rest = rest.slice(whole);
    }
  }

  /** Writes everything with a checkpoint and syncs it. */
  private async sync(): Promise<void> {
    this.isSyncDue = false;
    clearTimeout(this.timers.get('sync'));
    this.timers.delete('sync');
    this.flushOldBeginning();
    const isNew = this.lines.length > 0 || this.size > this.storedSize;
    if (isNew) this.push(this.encoder.checkpoint(this.now()));
    const { offset } = this.encoder;
    await this.append();
    const { size } = this;
    if (isNew) await this.options.file.datasync();
    if (size > this.storedSize) this.options.events.onDurable(offset, size);
    this.storedSize = size;
    await this.checkFreeSpace();
  }

  /** Writes an incomplete character that did not change between two syncs, so that it becomes durable. */
  private flushOldBeginning(): void {
    const { offset, pending } = this.encoder;
    if (pending === 0 || this.stop !== null) return;
    if (this.lastFlushed === offset) this.add(this.encoder.flush(this.now()));
    else this.arm('sync', RECORDING_LIMITS.syncAfter);
    this.lastFlushed = offset;
  }

  private async checkFreeSpace(): Promise<void> {
    const at = this.options.clock.monotonic();
    const isDue =
      at - this.diskAsked.at >= RECORDING_LIMITS.askDiskAfter ||
      this.size - this.diskAsked.size >= RECORDING_LIMITS.askDiskBytes;
    if (!isDue || this.hasEnded) return;
    this.diskAsked = { at, size: this.size };
    const problem = await this.options.diskProblem();
    if (problem !== null && !this.hasEnded) this.end({ state: 'truncated', reason: problem });
  }

  /** Stops recording, after writing everything collected so far. */
  private end(stop: Stop): void {
    if (this.stop !== null) return;
    this.stop = stop;
    this.push([
      ...this.encoder.flush(this.now()),
      ...this.encoder.mark(this.now(), `recording stopped: ${stop.reason}`),
    ]);
    this.isSyncDue = true;
    this.run();
    this.options.events.onStopped(stop.state, stop.reason);
  }

  /** Handles a write error: leaves the file with complete lines. */
  private async fail(error: unknown): Promise<void> {
    this.isFailed = true;
    const hadStopped = this.stop !== null;
    const reason = reasonOf(error);
    this.stop = { state: 'failed', reason };
    this.lines = [];
    this.linesLength = 0;
    const { file } = this.options;
    try {
      await file.truncate(this.size);
      const mark = Buffer.concat(this.encoder.mark(this.now(), `recording stopped: ${reason}`));
      const { bytesWritten } = await file.write(mark);
      if (bytesWritten === mark.length) this.size += mark.length;
      else await file.truncate(this.size);
      await file.datasync();
    } catch {}
    if (!hadStopped && this.ending === null) this.options.events.onStopped('failed', reason);
  }

  private async finish(status: number | null): Promise<RecordingEnd> {
    await this.idle();
    if (this.stop === null) {
      this.push(this.encoder.flush(this.now()));
      if (status !== null) this.push(this.encoder.exit(this.now(), status));
    }
    await this.closeFile();
    const sha256 = this.isFailed ? await this.options.hashFile() : this.encoder.sha256;
    return { state: this.stop?.state ?? (this.isFull ? 'truncated' : 'complete'), sha256 };
  }

  /** Does not write an incomplete character, because it is resent with its rest. */
  private async leave(): Promise<RecordingEnd> {
    await this.idle();
    await this.closeFile();
    return { state: this.stop?.state ?? 'complete', sha256: this.encoder.sha256 };
  }

  private async closeFile(): Promise<void> {
    this.isSyncDue = true;
    this.run();
    await this.idle();
    for (const timer of this.timers.values()) clearTimeout(timer);
    this.timers.clear();
    await this.options.file.close().catch(() => {});
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EIO: 'the disk does not work',
  EROFS: 'the disk can only be read',
};

const reasonOf = (error: unknown): string => REASONS[systemCodeOf(error) ?? ''] ?? messageOf(error);

/** Bytes of text that are looked at. */
const SAMPLE = 4_096;

/** Returns whether bytes are no text of any usual encoding: a NUL, or many bytes that are neither UTF-8 nor printable ASCII. */
function isBinary(bytes: Buffer): boolean {
  if (bytes.includes(0)) return true;
  if (isUtf8(bytes)) return false;
  const sample = bytes.subarray(0, SAMPLE);
  let strange = 0;
  for (const byte of sample) if (byte >= 0x7f || (byte < 0x20 && !TEXT_CONTROLS.has(byte))) strange += 1;
  return strange > sample.length / 3;
}

/** Control characters of text: backspace to carriage return, and escape. */
const TEXT_CONTROLS = new Set([0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1b]);

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;
