/**
 * The screen of a recorded session. A flood does not wait for it. The screen falls behind, and catches up from the recording when
 * less output arrives or a client needs a picture. Serves the benchmark row "throughput".
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Fault } from '../../../src/kernel/fault.js';
import { Backlog } from '../../../src/terminal/backlog.js';
import type { Picture, Screen } from '../emulator/screens.js';
import type { RecordedOutput } from '../recordings/recorded-output.js';
import type { Recorder } from '../recordings/recorder.js';
import type { Size } from '../session-factory.js';

interface TrailingScreenOptions {
  readonly screen: Screen;
  readonly recorder: Pick<Recorder, 'durable' | 'readBack' | 'isRecording'>;
  /** Offset of the first byte to be written. */
  readonly offset: number;
}

/** Maximum bytes that wait for the emulator before the screen falls behind, and while it catches up. */
const AHEAD = 1024 * 1024;
/** Bytes of newest output that are kept in memory. */
const RECENT = 512 * 1024;
/** Maximum bytes that the screen may be behind, which a picture waits for. */
const MOST_BEHIND = 64 * 1024 * 1024;
/** The screen catches up when at most `CALM` bytes arrive within `LOOK` milliseconds. */
const CALM = 256 * 1024;
const LOOK = 200;
/** Milliseconds between two attempts to continue, and until reading gives up. */
const TICK = 10;
const GIVE_UP = 10_000;

export class TrailingScreen implements Screen {
  private readonly options: TrailingScreenOptions;
  /** Reader of the recording while the screen is behind; null otherwise. */
  private recorded: RecordedOutput | null = null;
  private readonly recent: Backlog;
  private sizes: { readonly at: number; readonly size: Size }[] = [];
  private written: number;
  private fed: number;
  private pendingPictures = 0;
  private catchingUp: Promise<void> | null = null;
  private calmTimer: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(options: TrailingScreenOptions) {
    this.options = options;
    this.recent = new Backlog(options.offset);
    this.written = options.offset;
    this.fed = options.offset;
  }

  /** Offset that counts as parsed: output waits for the screen only when it is too far behind. */
  get parsed(): number {
    const { screen, recorder } = this.options;
    if (this.isClosed) return this.written;
    if (this.pendingPictures > 0 || !recorder.isRecording) return screen.parsed;
    return Math.min(this.written, screen.parsed + MOST_BEHIND);
  }

  write(bytes: Buffer): void {
    this.written += bytes.length;
    if (this.isClosed) return;
    if (this.recorded === null) {
      this.options.screen.write(bytes);
      this.fed = this.written;
      if (this.fed - this.options.screen.parsed > AHEAD) this.fallBehind();
      return;
    }
    this.recent.append(bytes);
    // Output that is not in the file yet must stay in memory.
    const { durable, isRecording } = this.options.recorder;
    if (isRecording) this.recent.dropBefore(Math.min(durable, this.recent.end - RECENT));
    if (this.written - this.fed > MOST_BEHIND / 2) this.catchUp();
  }

  resize(cols: number, rows: number): void {
    if (this.recorded === null) this.options.screen.resize(cols, rows);
    else this.sizes.push({ at: this.written, size: { cols, rows } });
  }

  async picture(): Promise<Picture> {
    this.pendingPictures += 1;
    try {
      this.catchUp();
      await this.catchingUp;
      return await this.options.screen.picture();
    } finally {
      this.pendingPictures -= 1;
    }
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.writeDirectly();
    this.options.screen.close();
  }

  private fallBehind(): void {
    this.recorded = this.options.recorder.readBack();
    if (this.recorded === null) return;
    this.recent.restart(this.written);
    this.waitForCalm();
  }

  /** Waits until less output arrives. */
  private waitForCalm(): void {
    const before = this.written;
    this.calmTimer = setTimeout(() => {
      if (this.written - before <= CALM) this.catchUp();
      else this.waitForCalm();
    }, LOOK).unref();
  }

  private catchUp(): void {
    if (this.recorded === null || this.catchingUp !== null) return;
    clearTimeout(this.calmTimer);
    this.catchingUp = this.follow(this.recorded)
      .catch(() => this.close())
      .finally(() => {
        this.catchingUp = null;
      });
  }

  private async follow(recorded: RecordedOutput): Promise<void> {
    let stalled = 0;
    while (!this.isClosed && this.recorded !== null) {
      if (this.fed - this.options.screen.parsed > AHEAD) await pause(TICK);
      else if (this.fed >= this.recent.start) this.feedRecent();
      else if (this.feedRecorded(recorded)) {
        stalled = 0;
        await pause(0);
      } else if (stalled >= GIVE_UP) throw new Fault('internal', 'the recording does not hold what was written');
      else {
        stalled += TICK;
        await pause(TICK);
      }
    }
  }

  /** Feeds output from the recording. Returns false when nothing new can be read yet. */
  private feedRecorded(recorded: RecordedOutput): boolean {
    let at = recorded.offset;
    const outputs = recorded.next();
    for (const bytes of outputs) {
      if (at + bytes.length > this.fed) this.feed(bytes.subarray(this.fed - at));
      at += bytes.length;
    }
    return outputs.length > 0;
  }

  private feedRecent(): void {
    const piece = this.recent.read(this.fed, AHEAD);
    if (piece !== null) {
      this.feed(piece.bytes);
      return;
    }
    this.resizeAt(this.fed);
    this.writeDirectly();
  }

  /** Feeds output and applies each resize at its offset. */
  private feed(bytes: Buffer): void {
    let rest = bytes;
    for (let next = this.sizes[0]; next !== undefined && next.at < this.fed + rest.length; next = this.sizes[0]) {
      const before = rest.subarray(0, next.at - this.fed);
      this.options.screen.write(before);
      this.fed += before.length;
      rest = rest.subarray(before.length);
      this.resizeAt(this.fed);
    }
    this.options.screen.write(rest);
    this.fed += rest.length;
  }

  private resizeAt(offset: number): void {
    for (let next = this.sizes[0]; next !== undefined && next.at <= offset; next = this.sizes[0]) {
      this.options.screen.resize(next.size.cols, next.size.rows);
      this.sizes.shift();
    }
  }

  /** Returns to direct writing. */
  private writeDirectly(): void {
    clearTimeout(this.calmTimer);
    this.recorded?.close();
    this.recorded = null;
    this.recent.restart(this.written);
    this.sizes = [];
  }
}
