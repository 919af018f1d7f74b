/** The relay's end of one recording: gathers its output for the thread that records, and knows how far that has come. */
import { rm } from 'node:fs/promises';
import type { Clock } from '../../../src/kernel/clock.js';
import type { OutputStream } from '../../../src/terminal/frames.js';
import { Gathering } from '../output-slots.js';
import { hashFile } from './hash-file.js';
import { mendRecording } from './mend-recording.js';
import { RecordedOutput } from './recorded-output.js';
import type { Recorder, RecorderEvents, RecordingEnd } from './recorder.js';
import { RECORDING_LIMITS as LIMITS } from './recording-limits.js';
import type { BegunRecording } from './recording-messages.js';
import { BROKEN, type RecordingListener, type RecordingThread } from './recording-thread.js';

export interface ThreadedRecorderOptions {
  readonly id: number;
  readonly thread: RecordingThread;
  readonly begun: BegunRecording;
  readonly events: RecorderEvents;
  readonly clock: Clock;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly fullPath: string;
  /** Called once when the file is closed: for good, or to be gone on with. */
  readonly onClosed: (isDone: boolean) => void;
}

export class ThreadedRecorder implements Recorder, RecordingListener {
  readonly path: string;
  private readonly options: ThreadedRecorderOptions;
  /** All output that was given, recorded or not. */
  private given: number;
  private stored: number;
  private storedSize: number;
  /** Output that waits for more of it, so that single bytes share an event. */
  private readonly gathering: Gathering;
  private stream: OutputStream = 'out';
  private timer: NodeJS.Timeout | undefined;
  private stopped: 'truncated' | 'failed' | null = null;
  private mending: Promise<void> | null = null;
  private ending: Promise<RecordingEnd> | null = null;

  constructor(options: ThreadedRecorderOptions) {
    const { path, durable, size } = options.begun;
    this.options = options;
    this.path = path;
    this.given = durable;
    this.stored = durable;
    this.storedSize = size;
    const { id, thread } = options;
    this.gathering = new Gathering(thread.slots, (place, transfer) =>
      thread.post({ do: 'write', id, stream: this.stream, ...place }, transfer),
    );
  }

  get durable(): number {
    return this.stopped === null ? this.stored : this.given;
  }

  /** Bytes of the file that are on the disk: whole lines that end with a checkpoint. */
  get durableSize(): number {
    return this.storedSize;
  }

  get isRecording(): boolean {
    return this.stopped === null && this.ending === null;
  }

  /** What is not on the disk yet may be in the file or not; what is can be found there. */
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
    this.gathering.add(bytes);
    if (this.gathering.waiting > 0) this.timer ??= setTimeout(() => this.flush(), LIMITS.coalesce);
  }

  resize(cols: number, rows: number): void {
    if (!this.isRecording) return;
    this.flush();
    this.options.thread.post({ do: 'resize', id: this.options.id, cols, rows });
  }

  mark(text: string): void {
    if (!this.isRecording) return;
    this.flush();
    this.options.thread.post({ do: 'mark', id: this.options.id, text });
  }

  close(status: number | null = null): Promise<RecordingEnd> {
    this.ending ??= this.finish({ do: 'close', id: this.options.id, status });
    return this.ending;
  }

  async release(): Promise<void> {
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
    this.mending = mendRecording(fullPath, at, `recording stopped: ${BROKEN}`);
    this.onStopped('failed', BROKEN);
  }

  private flush(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.gathering.flush();
  }

  /** What was gathered is not written any more. */
  private drop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.gathering.drop();
  }

  private async finish(question: Parameters<RecordingThread['end']>[0]): Promise<RecordingEnd> {
    const { fullPath, onClosed, thread } = this.options;
    this.flush();
    const end = this.mending === null ? await thread.end(question) : null;
    await this.mending;
    onClosed(question.do === 'close');
    return end ?? { state: 'failed', sha256: await hashFile(fullPath) };
  }
}
