/** Where the output of a session stands: what was received, what has reached its destination, what may be sent. */
import type { Clock } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';
import { ConsumerWindow, type Credit } from '../../terminal/window.js';

export class OutputIntake {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private window: ConsumerWindow | null = null;
  private position: number | null = null;
  /** A snapshot begins a new one: what was handed out before it says nothing about the offsets behind it. */
  private epoch = 0;
  private handedOut = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock;
  }

  /** Offset of the next byte; null while nothing has come. */
  get received(): number | null {
    return this.position;
  }

  /** Nothing that was handed out is still on its way. */
  get settled(): boolean {
    return this.handedOut === 0;
  }

  /** What the producer may know; null while the stream has no place yet. */
  get credit(): Credit | null {
    return this.window?.credit ?? null;
  }

  /** @param roundTrip to the producer, in milliseconds */
  measured(roundTrip: number): void {
    this.window?.measured(roundTrip);
  }

  /**
   * The part of it that is new; the first output of all may begin anywhere.
   * @throws Fault `protocol_violation` when something before it is missing
   */
  take(offset: number, bytes: Buffer): Buffer {
    this.begin(offset);
    const position = this.position ?? offset;
    if (offset > position) {
      throw new Fault('protocol_violation', `output from ${position} to ${offset} is missing`);
    }
    const fresh = bytes.subarray(Math.min(position - offset, bytes.length));
    this.position = position + fresh.length;
    return fresh;
  }

  /** Bytes that were never received when the stream goes on at the offset of a snapshot; 0 where it begins. */
  gapTo(offset: number): number {
    return Math.max(0, offset - (this.position ?? offset));
  }

  /** The stream goes on at the offset of a snapshot. Gives what to tell the producer. */
  jump(offset: number): Credit {
    this.epoch += 1;
    this.position = offset;
    const window = this.begin(offset);
    return window.jump(offset);
  }

  /**
   * To be called when what was taken last is handed out.
   * @param onDone given what to tell the producer, or null for nothing
   * @returns to be called when it has reached its destination
   */
  handOut(onDone: (credit: Credit | null) => void): () => void {
    const { epoch, position: end } = this;
    let isDone = false;
    this.handedOut += 1;
    return () => {
      if (isDone) return;
      isDone = true;
      this.handedOut -= 1;
      onDone(epoch === this.epoch && end !== null ? (this.window?.take(end, this.settled) ?? null) : null);
    };
  }

  private begin(offset: number): ConsumerWindow {
    this.position ??= offset;
    this.window ??= new ConsumerWindow({ clock: this.clock, first: TERMINAL_LIMITS.firstWindow, offset });
    return this.window;
  }
}
