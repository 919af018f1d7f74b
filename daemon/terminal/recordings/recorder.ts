/** The recorder of a session, as the relay uses it, and its implementation over the recording thread. */

import { type FileHandle, open, rm } from 'node:fs/promises';
import type { Piece } from '../../../src/terminal/backlog.js';
import type { OutputStream } from '../../../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';
import { eventLine, parseEvent } from '../../../src/terminal/recording/cast-format.js';
import { MAX_LINE_BYTES } from '../../../src/terminal/recording/read-cast.js';
import type { Core } from '../../core/core.js';
import { OutputBatch } from '../output-slots.js';
import { RecordedOutput } from './recorded-output.js';
import type { RecordingEnd, RecordingHead } from './recording.js';
import { hashFile } from './recording-files.js';
import { RECORDING_LIMITS } from './recording-limits.js';
import { type BegunRecording, BROKEN, type RecordingListener, type RecordingThread } from './recording-thread.js';

export interface RecorderEvents {
  /** Output up to the offset is durable. */
  onDurable(offset: number): void;
  /** The recording stopped because of its size limit, the disk or an error. Later writes are ignored. */
  onStopped(state: 'truncated' | 'failed', reason: string): void;
}

export interface Recorder {
  /** Path of the plain file, relative to the data directory. The closed file is compressed and gets the suffix `.gz`. */
  readonly path: string;
  /** Offset up to which output is durable, or will not be recorded. */
  readonly durable: number;
  /** False once the recording has stopped or ended. */
  readonly isRecording: boolean;
  /** Returns a reader of everything that is not durable yet; null when that is impossible. The caller closes it. */
  readBack(): RecordedOutput | null;
  /** Records output. */
  write(stream: OutputStream, bytes: Buffer): void;
  resize(cols: number, rows: number): void;
  /** Records an event that is not output: `ada took the pen`, `relay restarted`. */
  mark(text: string): void;
  /**
   * Writes the rest and closes the file; never rejects. A second call returns the same end.
   * @param status exit status of the program, if known
   */
  close(status?: number | null): Promise<RecordingEnd>;
  /** Writes the rest and releases the file, because the orchestrator stops. `recover` continues it later. */
  release(): Promise<void>;
  /** Closes and deletes the file, because its session did not open. */
  discard(): Promise<void>;
}

/** A recording that was open when the orchestrator ended, and continues. */
export interface Recovered {
  readonly recorder: Recorder;
  /** Newest output before the point of continuation, for clients that resume. */
  readonly tail: readonly Piece[];
  /** Streams all output and sizes from the file, in order, for the screen. */
  replay(): AsyncIterable<{ readonly output: Buffer } | { readonly cols: number; readonly rows: number }>;
}

export interface Recordings {
  /** Creates a recording. Throws Fault `recording_failed` when the file cannot be created or the disk is too full. */
  create(head: RecordingHead, events: RecorderEvents): Promise<Recorder>;
  /**
   * Removes an incomplete end that a crash left, and continues the recording.
   * @throws Fault `recording_failed`, `transcript_invalid`
   */
  recover(head: RecordingHead, events: RecorderEvents): Promise<Recovered>;
  /** Returns the current name of a recording by its path; null when it does not exist. */
  locate(path: string): Promise<string | null>;
}

interface WorkerRecorderOptions extends Pick<Core, 'clock'> {
  readonly id: number;
  readonly thread: RecordingThread;
  readonly opened: BegunRecording;
  readonly events: RecorderEvents;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly fullPath: string;
  /** Called once when the file is closed. `isDone` is false when another run continues it. */
  readonly onClosed: (isDone: boolean) => void;
}

/** The relay's side of one recording: collects output for the recording thread, and tracks what is durable. */
export class WorkerRecorder implements Recorder, RecordingListener {
  readonly path: string;
  private readonly options: WorkerRecorderOptions;
  /** End offset of all given output, recorded or not. */
  private given: number;
  private stored: number;
  private storedSize: number;
  /** Output that is collected into one event. */
  private readonly batch: OutputBatch;
  private stream: OutputStream = 'out';
  private timer: NodeJS.Timeout | undefined;
  /** Latest size that is not recorded yet. */
  private wantedSize: Pick<RecordingHead, 'cols' | 'rows'> | null = null;
  /** Runs while the last recorded size is younger than the agent's pause between two sizes. */
  private resizing: NodeJS.Timeout | undefined;
  private stopped: 'truncated' | 'failed' | null = null;
  private recovery: Promise<void> | null = null;
  private ending: Promise<RecordingEnd> | null = null;

  constructor(options: WorkerRecorderOptions) {
    const { path, durable, size } = options.opened;
    this.options = options;
    this.path = path;
    this.given = durable;
    this.stored = durable;
    this.storedSize = size;
    const { id, thread } = options;
    this.batch = new OutputBatch(thread.slots, (place, transfer) =>
      thread.post({ do: 'write', id, stream: this.stream, ...place }, transfer),
    );
  }

  get durable(): number {
    return this.stopped === null ? this.stored : this.given;
  }

  /** Durable bytes of the file: complete lines up to a checkpoint. */
  get durableSize(): number {
    return this.storedSize;
  }

  get isRecording(): boolean {
    return this.stopped === null && this.ending === null;
  }

  /** Starts at the durable position, because later output may or may not be in the file. */
  readBack(): RecordedOutput | null {
    if (!this.isRecording) return null;
    try {
      return new RecordedOutput({ path: this.options.fullPath, position: this.storedSize, offset: this.stored });
    } catch {
      return null;
    }
  }

  write(stream: OutputStream, bytes: Buffer): void {
    this.given += bytes.length;
    if (!this.isRecording) return;
    if (stream !== this.stream) this.flush();
    this.stream = stream;
    this.batch.add(bytes);
    if (this.batch.waiting > 0) this.timer ??= setTimeout(() => this.flush(), RECORDING_LIMITS.coalesce);
  }

  resize(cols: number, rows: number): void {
    this.wantedSize = { cols, rows };
    if (this.resizing === undefined) this.recordSize();
  }

  mark(text: string): void {
    if (!this.isRecording) return;
    this.flush();
    this.options.thread.post({ do: 'mark', id: this.options.id, text });
  }

  close(status: number | null = null): Promise<RecordingEnd> {
    this.recordSize();
    this.ending ??= this.finish({ do: 'close', id: this.options.id, status });
    return this.ending;
  }

  async release(): Promise<void> {
    this.recordSize();
    this.ending ??= this.finish({ do: 'release', id: this.options.id });
    await this.ending;
  }

  async discard(): Promise<void> {
    await this.release();
    await rm(this.options.fullPath, { force: true });
  }

  onDurable(offset: number, size: number): void {
    this.storedSize = size;
    if (offset <= this.stored) return;
    this.stored = offset;
    if (this.stopped === null) this.options.events.onDurable(offset);
  }

  onStopped(state: 'truncated' | 'failed', reason: string): void {
    const wasRecording = this.isRecording;
    const isFirst = this.stopped === null;
    this.stopped = state;
    this.drop();
    if (isFirst && wasRecording) this.options.events.onStopped(state, reason);
  }

  onBroken(): void {
    const { clock, openedAt, fullPath } = this.options;
    const at = Math.max(0, clock.now() - openedAt) / 1000;
    this.recovery = mendRecording(fullPath, at, `recording stopped: ${BROKEN}`);
    this.onStopped('failed', BROKEN);
  }

  /** Records the newest size, at the pace at which the agent changes it. */
  private recordSize(): void {
    const { wantedSize } = this;
    this.wantedSize = null;
    if (wantedSize === null || !this.isRecording) return;
    this.flush();
    this.options.thread.post({ do: 'resize', id: this.options.id, ...wantedSize });
    this.resizing = setTimeout(() => {
      this.resizing = undefined;
      this.recordSize();
    }, TERMINAL_LIMITS.resizePause);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.batch.flush();
  }

  /** Drops the collected output. */
  private drop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.batch.drop();
  }

  private async finish(question: Parameters<RecordingThread['end']>[0]): Promise<RecordingEnd> {
    const { fullPath, onClosed, thread } = this.options;
    this.flush();
    clearTimeout(this.resizing);
    const end = this.recovery === null ? await thread.end(question) : null;
    await this.recovery;
    onClosed(question.do === 'close');
    return end ?? { state: 'failed', sha256: await hashFile(fullPath) };
  }
}

const LF = 10;
/** Bytes per read. */
const PORTION = 64 * 1024;
/** Replacement for invalid UTF-8; the next line has the exact bytes. */
const REPLACEMENT = '\ufffd';

/**
 * Repairs the end of a recording whose thread has crashed: leaves complete lines and a last mark with the reason. Never rejects,
 * because a failing disk leaves nothing to do.
 * @param at seconds since the start
 */
async function mendRecording(path: string, at: number, text: string): Promise<void> {
  let file: FileHandle | null = null;
  try {
    file = await open(path, 'r+');
    const end = await endOfLines(file);
    await file.truncate(end);
    await file.write(eventLine(Math.round(at * 1000) / 1000, 'm', text), end);
    await file.datasync();
  } catch {
  } finally {
    await file?.close().catch(() => {});
  }
}

/** Returns the length of the complete lines, without a last one whose exact bytes may be lost. */
async function endOfLines(file: FileHandle): Promise<number> {
  const { size } = await file.stat();
  const end = await lineBefore(file, size);
  const start = await lineBefore(file, end - 1);
  if (end - start > MAX_LINE_BYTES) return end;
  const last = Buffer.alloc(Math.max(0, end - start));
  await file.read(last, 0, last.length, start);
  const event = parseEvent(last.toString('utf8'));
  return event?.code === 'o' && event.data.includes(REPLACEMENT) ? start : end;
}

/** Returns the start of the line that ends at `before`. */
async function lineBefore(file: FileHandle, before: number): Promise<number> {
  const chunk = Buffer.alloc(PORTION);
  for (let to = before; to > 0; ) {
    const from = Math.max(0, to - PORTION);
    const { bytesRead } = await file.read(chunk, 0, to - from, from);
    const last = chunk.subarray(0, bytesRead).lastIndexOf(LF);
    if (last >= 0) return from + last + 1;
    to = from;
  }
  return 0;
}
