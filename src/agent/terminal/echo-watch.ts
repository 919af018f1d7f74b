/**
 * Tells the client where its input stands: how much of it the program could read, and how much for so long that its echo would
 * have come. Looks at the terminal only while the client waits for an answer.
 */
import type { Clock } from '../../kernel/clock.js';
import type { EchoAck, Reading } from '../../terminal/frames.js';

export interface EchoWatchOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Output of the program so far; null while its output is not read, so that an echo may be missing. */
  readonly produced: () => number | null;
  readonly readSettings: () => Promise<Reading>;
  readonly tell: (ack: EchoAck) => void;
}

interface Given {
  readonly offset: number;
  readonly at: number;
}

/** A program that echoes has echoed after that, in milliseconds. */
const SETTLED_AFTER = 50;
/** Least time between two looks, in milliseconds. */
const PAUSE = 20;

export class EchoWatch {
  private readonly options: EchoWatchOptions;
  /** Input that is not known to be settled. */
  private readonly recent: Given[] = [];
  private given = 0;
  private settled = 0;
  private asked = 0;
  private answeredGiven = 0;
  private answeredSettled = 0;
  private isLooking = false;
  private lastLook = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(options: EchoWatchOptions) {
    this.options = options;
  }

  /** The program can read all input before that offset. */
  gave(offset: number): void {
    this.given = offset;
    this.recent.push({ offset, at: this.options.clock.monotonic() });
    this.settle();
    this.plan();
  }

  /** The client wants to know about all input before that offset. */
  ask(offset: number): void {
    this.asked = Math.max(this.asked, offset);
    this.plan();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** Plans the next look, unless all questions are answered or must wait for input that has not come. */
  private plan(): void {
    clearTimeout(this.timer);
    if (this.isStopped || this.isLooking || this.answeredSettled >= Math.min(this.asked, this.given)) return;
    const now = this.options.clock.monotonic();
    const last = this.recent.at(-1);
    const isNew = this.answeredGiven < Math.min(this.asked, this.given);
    const due = isNew || last === undefined ? now : last.at + SETTLED_AFTER;
    const wait = Math.max(due - now, this.lastLook + PAUSE - now, 0);
    if (wait === 0) void this.look();
    else this.timer = setTimeout(() => void this.look(), wait);
  }

  private async look(): Promise<void> {
    this.isLooking = true;
    this.lastLook = this.options.clock.monotonic();
    this.settle();
    const { given, settled } = this;
    const output = this.options.produced();
    if (output !== null) {
      const reading = await this.options.readSettings();
      this.answeredGiven = given;
      this.answeredSettled = settled;
      if (!this.isStopped) this.options.tell({ given, settled, output, reading });
    }
    this.isLooking = false;
    this.plan();
  }

  private settle(): void {
    const before = this.options.clock.monotonic() - SETTLED_AFTER;
    for (let first = this.recent[0]; first !== undefined && first.at <= before; first = this.recent[0]) {
      this.settled = first.offset;
      this.recent.shift();
    }
  }
}
