/** Progress of a session's output: what was received, what was delivered, and what the producer may send. */
import type { Clock } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import { TERMINAL_LIMITS } from '../../terminal/limits.js';
import { ConsumerWindow, type Credit } from '../../terminal/window.js';

export class OutputIntake {
  private readonly clock: Pick<Clock, 'monotonic'>;
  private window: ConsumerWindow | null = null;
  private position: number | null = null;
  /** Counts snapshots. Output delivered before one does not affect the offsets after it. */
  private epoch = 0;
  private inDelivery = 0;
  /** Milliseconds; measured before the first output, too. */
  private roundTrip = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock;
  }

  /** Offset of the next byte; null before the first. */
  get received(): number | null {
    return this.position;
  }

  /** True when everything handed out was delivered. */
  get isDelivered(): boolean {
    return this.inDelivery === 0;
  }

  /** Current credit; null before the stream has an offset. */
  get credit(): Credit | null {
    return this.window?.credit ?? null;
  }

  /** Takes the round-trip time to the producer in milliseconds. */
  measured(roundTrip: number): void {
    this.roundTrip = roundTrip;
    this.window?.measured(roundTrip);
  }

  /**
   * Returns the new part of the output. The first output may start at any offset.
   * @throws Fault `protocol_violation` when output before it is missing
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

  /** Returns the number of bytes that a snapshot at the offset skips; 0 at the start. */
  gapTo(offset: number): number {
    return Math.max(0, offset - (this.position ?? offset));
  }

  /** Continues at the offset of a snapshot. Returns the credit to send. */
  jump(offset: number): Credit {
    this.epoch += 1;
    this.position = offset;
    const window = this.begin(offset);
    return window.jump(offset);
  }

  /**
   * Records that the output taken last is handed out.
   * @param onDone receives the credit to send, or null
   * @returns a function to call on delivery
   */
  trackDelivery(onDone: (credit: Credit | null) => void): () => void {
    const { epoch, position: end } = this;
    let isDone = false;
    this.inDelivery += 1;
    return () => {
      if (isDone) return;
      isDone = true;
      this.inDelivery -= 1;
      onDone(epoch === this.epoch && end !== null ? (this.window?.take(end, this.isDelivered) ?? null) : null);
    };
  }

  private begin(offset: number): ConsumerWindow {
    this.position ??= offset;
    if (this.window === null) {
      this.window = new ConsumerWindow({ clock: this.clock, first: TERMINAL_LIMITS.firstWindow, offset });
      this.window.measured(this.roundTrip);
    }
    return this.window;
  }
}
