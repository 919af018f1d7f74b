/**
 * The screen of a session that is recorded. A flood does not wait for it: it stays behind, and reads what it has not seen from
 * the recording when less comes, or when somebody wants the picture.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Fault } from '../../../src/kernel/fault.js';
import { Backlog } from '../../../src/terminal/backlog.js';
import type { RecordedOutput } from '../recordings/recorded-output.js';
import type { Recorder } from '../recordings/recorder.js';
import type { Picture, Screen } from '../screen.js';
import type { Size } from './session-parts.js';

export interface TrailingScreenOptions {
  readonly screen: Screen;
  readonly recorder: Pick<Recorder, 'durable' | 'readBack' | 'isRecording'>;
  /** Of the first byte that will be written. */
  readonly offset: number;
}

/** Output that waits for the emulator before it is left to the recording, and again while it is read back, in bytes. */
const AHEAD = 1024 * 1024;
/** The newest output, and what is not in the file yet. */
const RECENT = 512 * 1024;
/** So far it may be behind: what a picture waits for. */
export const MOST_BEHIND = 64 * 1024 * 1024;
/** It catches up once no more than that has come in so many milliseconds. */
const CALM = 256 * 1024;
const LOOK = 200;
/** Between two attempts to go on, and until the file is believed to hold no more, in milliseconds. */
const TICK = 10;
const GIVE_UP = 10_000;

export class TrailingScreen implements Screen {
  private readonly options: TrailingScreenOptions;
  /** While it is behind: the recording of what was not fed. */
  private recorded: RecordedOutput | null = null;
  private readonly recent: Backlog;
  private sizes: { readonly at: number; readonly size: Size }[] = [];
  private written: number;
  private fed: number;
  private wanted = 0;
  private catching: Promise<void> | null = null;
  private looking: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(options: TrailingScreenOptions) {
    this.options = options;
    this.recent = new Backlog(options.offset);
    this.written = options.offset;
    this.fed = options.offset;
  }

  /** As far as the output has to wait for it. */
  get parsed(): number {
    const { screen, recorder } = this.options;
    if (this.isClosed) return this.written;
    if (this.wanted > 0 || !recorder.isRecording) return screen.parsed;
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
    // What is not in the file, and may never be, is nowhere else.
    const { durable, isRecording } = this.options.recorder;
    if (isRecording) this.recent.dropBefore(Math.min(durable, this.recent.end - RECENT));
    if (this.written - this.fed > MOST_BEHIND / 2) this.catchUp();
  }

  resize(cols: number, rows: number): void {
    if (this.recorded === null) this.options.screen.resize(cols, rows);
    else this.sizes.push({ at: this.written, size: { cols, rows } });
  }

  async picture(): Promise<Picture> {
    this.wanted += 1;
    try {
      this.catchUp();
      await this.catching;
      return await this.options.screen.picture();
    } finally {
      this.wanted -= 1;
    }
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.goOn();
    this.options.screen.close();
  }

  private fallBehind(): void {
    this.recorded = this.options.recorder.readBack();
    if (this.recorded === null) return;
    this.recent.restart(this.written);
    this.look();
  }

  /** Waits until less comes. */
  private look(): void {
    const before = this.written;
    this.looking = setTimeout(() => {
      if (this.written - before <= CALM) this.catchUp();
      else this.look();
    }, LOOK).unref();
  }

  private catchUp(): void {
    if (this.recorded === null || this.catching !== null) return;
    clearTimeout(this.looking);
    this.catching = this.follow(this.recorded)
      .catch(() => this.close())
      .finally(() => {
        this.catching = null;
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

  /** @returns false when there is nothing to read yet */
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
    this.goOn();
  }

  /** The sizes come where they came. */
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

  /** It is not behind any more. */
  private goOn(): void {
    clearTimeout(this.looking);
    this.recorded?.close();
    this.recorded = null;
    this.recent.restart(this.written);
    this.sizes = [];
  }
}
