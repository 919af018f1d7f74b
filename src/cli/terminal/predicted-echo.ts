/** Local echo: shows keys before a distant program echoes them, and removes wrong predictions. */
import { StringDecoder } from 'node:string_decoder';
import type { Clock } from '../../kernel/clock.js';
import type { EchoAck } from '../../terminal/frames.js';
import type { EchoScreen, EchoScreenOptions } from './echo-screen.js';
import { type PaintedOverlay, type PredictionCounts, Predictor, paintOverlay } from './predictor.js';
import type { PredictChoice, Size } from './session-options.js';
import type { OutputOverlay } from './terminal-output.js';

interface PredictedEchoOptions {
  readonly when: Exclude<PredictChoice, 'never'>;
  /** True if the session's output starts with the first written byte. */
  readonly isNew: boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
  size(): Size;
  /** Asks the agent to acknowledge the input before an offset. */
  askEcho(end: number): void;
  /** Redraws the overlay after the output that is already queued. */
  redraw(): void;
}

/** Round-trip times in milliseconds at which `auto` starts, and below which it stops. */
const SLOW = 30;
const FAST = 20;
/** Weight of a new sample in the smoothed round-trip time. */
const SMOOTHING = 1 / 4;
/** Milliseconds without a key after which the program has to echo keys again, because it may ask for something else. */
const REST = 1_000;
/** Bytes typed at once that count as a paste. */
const PASTE = 100;
/** Bytes of output kept until the round-trip time is known. */
const EARLY = 64 * 1024;
/** Bytes of output without a key after which the emulation stops, because it would slow down a flood. */
const FLOOD = 256 * 1024;

type ScreenMaker = new (options: EchoScreenOptions) => EchoScreen;

export class PredictedEcho implements OutputOverlay {
  private readonly options: PredictedEchoOptions;
  private readonly predictor = new Predictor();
  private decoder = new StringDecoder('utf8');
  private maker: ScreenMaker | null = null;
  private screen: EchoScreen | null = null;
  private painted: PaintedOverlay | null = null;
  /** Output since the start of the session; null if incomplete. */
  private early: Buffer[] | null;
  private earlyBytes = 0;
  /** Bytes of output since the last key. */
  private since = 0;
  private isOn = false;
  private isStopped = false;
  private trip: number | null = null;
  private typedAt = Number.NEGATIVE_INFINITY;
  private sample: { readonly end: number; readonly at: number } | null = null;

  constructor(options: PredictedEchoOptions) {
    this.options = options;
    this.early = options.isNew ? [] : null;
    if (options.when === 'always') this.turn(true);
  }

  get counts(): PredictionCounts {
    return this.predictor.counts;
  }

  /** Adds a sample of the round-trip time in milliseconds. */
  measured(trip: number): void {
    this.trip = this.trip === null ? trip : this.trip + (trip - this.trip) * SMOOTHING;
    if (this.options.when === 'always') return;
    if (this.trip >= SLOW) this.turn(true);
    else if (this.trip < FAST) this.turn(false);
  }

  /**
   * Predicts keys that were sent.
   * @param end input offset after them; null if they may still be dropped
   */
  typed(bytes: Buffer, end: number | null): void {
    if (!this.isOn || this.maker === null || this.isStopped) return;
    this.since = 0;
    this.screen ??= new this.maker({ ...this.options.size(), isFresh: false });
    if (end === null) {
      this.reset();
      return;
    }
    const now = this.options.clock.monotonic();
    if (now - this.typedAt > REST) this.predictor.rest();
    this.typedAt = now;
    const keys = this.decoder.write(bytes);
    const isWhole = Buffer.byteLength(keys) === bytes.length && !keys.includes('\ufffd');
    if (bytes.length > PASTE || !isWhole) this.predictor.recordUnpredicted(end);
    else this.predictor.type(keys, end, this.screen);
    this.sample ??= { end, at: now };
    this.options.askEcho(end);
    this.options.redraw();
  }

  /** Handles an acknowledgement. Call it once the output that it covers is written. */
  acknowledged(ack: EchoAck): void {
    if (this.sample !== null && ack.given >= this.sample.end) {
      this.measured(this.options.clock.monotonic() - this.sample.at);
      this.sample = null;
    }
    if (this.screen !== null) this.predictor.acknowledge(ack, this.screen);
  }

  /** Forgets all predictions, as after a lost connection. */
  reset(): void {
    this.predictor.reset();
    this.decoder = new StringDecoder('utf8');
    this.sample = null;
    this.options.redraw();
  }

  /** Forgets the screen, whose layout is unknown after a resize until the program redraws. */
  resized(): void {
    this.forgetScreen();
    this.reset();
  }

  stop(): void {
    this.isStopped = true;
    this.forgetScreen();
    this.predictor.reset();
  }

  wrap(bytes: Buffer, isDrawable: boolean): Buffer {
    const before = this.painted;
    this.painted = isDrawable ? this.paint() : null;
    if (before === null && this.painted === null) return bytes;
    const isSame = before?.draw === this.painted?.draw && before?.undo === this.painted?.undo;
    // An unchanged overlay needs no write.
    if (bytes.length === 0 && isSame) return bytes;
    return Buffer.concat([Buffer.from(before?.undo ?? ''), bytes, Buffer.from(this.painted?.draw ?? '')]);
  }

  follow(bytes: Buffer): void {
    if (this.isStopped) return;
    this.since += bytes.length;
    if (this.screen === null) this.bufferEarly(bytes);
    else if (this.since > FLOOD) {
      this.forgetScreen();
      this.predictor.reset();
    } else {
      this.screen.write(bytes);
      this.predictor.drawn(this.screen);
    }
  }

  private paint(): PaintedOverlay | null {
    const overlay = this.screen === null ? null : this.predictor.overlay(this.screen);
    return overlay === null || this.screen === null ? null : paintOverlay(overlay, this.screen);
  }

  private bufferEarly(bytes: Buffer): void {
    this.earlyBytes += bytes.length;
    if (this.earlyBytes > EARLY) this.early = null;
    this.early?.push(Buffer.from(bytes));
  }

  private forgetScreen(): void {
    this.screen = null;
    this.early = null;
  }

  private turn(isOn: boolean): void {
    if (isOn === this.isOn) return;
    this.isOn = isOn;
    if (isOn) void this.begin();
    else {
      this.forgetScreen();
      this.reset();
    }
  }

  /** Loads the emulator on first use. */
  private async begin(): Promise<void> {
    const { EchoScreen: Maker } = await import('./echo-screen.js');
    this.maker = Maker;
    if (this.early === null || this.screen !== null || this.isStopped) return;
    const screen = new Maker({ ...this.options.size(), isFresh: true });
    for (const bytes of this.early) screen.write(bytes);
    this.forgetScreen();
    this.screen = screen;
  }
}
