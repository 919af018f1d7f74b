/** Shows keys at once that a program far away will echo, and takes back what turns out otherwise. */
import { StringDecoder } from 'node:string_decoder';
import type { Clock } from '../../kernel/clock.js';
import type { EchoAck } from '../../terminal/frames.js';
import type { EchoScreen, EchoScreenOptions } from './echo-screen.js';
import { type PaintedOverlay, type PredictionCounts, Predictor, paintOverlay } from './predictor.js';
import type { PredictChoice, Size } from './session-options.js';
import type { OutputOverlay } from './terminal-output.js';

export interface PredictedEchoOptions {
  readonly when: Exclude<PredictChoice, 'never'>;
  /** The session's output begins with the first byte that is written. */
  readonly isNew: boolean;
  readonly clock: Pick<Clock, 'monotonic'>;
  size(): Size;
  /** Asks the agent about the input before that offset. */
  askEcho(end: number): void;
  /** Has the overlay drawn anew, behind what is written already. */
  redraw(): void;
}

/** Round trips in milliseconds from which `auto` begins, and below which it ends. */
const SLOW = 30;
const FAST = 20;
/** The part that a new measurement has in the round trip. */
const SMOOTHING = 1 / 4;
/** Bytes typed at once that are a paste. */
const PASTE = 100;
/** Output in bytes that is kept until the round trip is known. */
const EARLY = 64 * 1024;
/** Output without a key in between, in bytes, after which the screen is not followed any more: a flood would wait for it. */
const FLOOD = 256 * 1024;

type ScreenMaker = new (options: EchoScreenOptions) => EchoScreen;

export class PredictedEcho implements OutputOverlay {
  private readonly options: PredictedEchoOptions;
  private readonly predictor = new Predictor();
  private decoder = new StringDecoder('utf8');
  private maker: ScreenMaker | null = null;
  private screen: EchoScreen | null = null;
  private painted: PaintedOverlay | null = null;
  /** Output since the beginning of the session; null when some of it is not known. */
  private early: Buffer[] | null;
  private earlyBytes = 0;
  /** Output since the last key, in bytes. */
  private since = 0;
  private isOn = false;
  private isStopped = false;
  private trip: number | null = null;
  private sample: { readonly end: number; readonly at: number } | null = null;

  constructor(options: PredictedEchoOptions) {
    this.options = options;
    this.early = options.isNew ? [] : null;
    if (options.when === 'always') this.turn(true);
  }

  get counts(): PredictionCounts {
    return this.predictor.counts;
  }

  /** Milliseconds to the agent and back. */
  measured(trip: number): void {
    this.trip = this.trip === null ? trip : this.trip + (trip - this.trip) * SMOOTHING;
    if (this.options.when === 'always') return;
    if (this.trip >= SLOW) this.turn(true);
    else if (this.trip < FAST) this.turn(false);
  }

  /**
   * Keys were given to the session.
   * @param end input offset behind them; null when they may still be dropped
   */
  typed(bytes: Buffer, end: number | null): void {
    if (!this.isOn || this.maker === null || this.isStopped) return;
    this.since = 0;
    this.screen ??= new this.maker({ ...this.options.size(), isFresh: false });
    if (end === null) {
      this.reset();
      return;
    }
    const keys = this.decoder.write(bytes);
    const isWhole = Buffer.byteLength(keys) === bytes.length && !keys.includes('\ufffd');
    if (bytes.length > PASTE || !isWhole) this.predictor.typeUnpredictably(end);
    else this.predictor.type(keys, end, this.screen);
    this.sample ??= { end, at: this.options.clock.monotonic() };
    this.options.askEcho(end);
    this.options.redraw();
  }

  /** To be called when all output that the acknowledgement speaks of is written. */
  acknowledged(ack: EchoAck): void {
    if (this.sample !== null && ack.given >= this.sample.end) {
      this.measured(this.options.clock.monotonic() - this.sample.at);
      this.sample = null;
    }
    if (this.screen !== null) this.predictor.acknowledge(ack, this.screen);
  }

  /** Forgets what was predicted, as when the connection is lost. */
  reset(): void {
    this.predictor.reset();
    this.decoder = new StringDecoder('utf8');
    this.sample = null;
    this.options.redraw();
  }

  /** The terminal has another size: where things are on it is not known until the program draws again. */
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
    // What changes nothing is not worth writing.
    if (bytes.length === 0 && isSame) return bytes;
    return Buffer.concat([Buffer.from(before?.undo ?? ''), bytes, Buffer.from(this.painted?.draw ?? '')]);
  }

  follow(bytes: Buffer): void {
    if (this.isStopped) return;
    this.since += bytes.length;
    if (this.screen === null) this.keepEarly(bytes);
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

  private keepEarly(bytes: Buffer): void {
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

  /** The emulator is only loaded where it is needed. */
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
