/** Relays input to the agent and keeps it until the agent has taken it, so that a lost socket loses no key. */
import type { Clock } from '../../../src/kernel/clock.js';
import { Backlog } from '../../../src/terminal/backlog.js';
import { anewFrame, eofFrame, inputFrame, resizeFrame } from '../../../src/terminal/frames.js';
import { InputAges } from '../../../src/terminal/late-input.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';

interface InputRelayOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  /** Sends to the agent. Frames sent while it is away are dropped and resent later. */
  readonly send: (data: Buffer) => void;
  /** Generation of sizes, above every generation that the agent has seen. */
  readonly generation: number;
}

/** Maximum age in milliseconds of input that is resent without asking the client. */
const FRESH = 5_000;

export class InputRelay {
  private readonly options: InputRelayOptions;
  private readonly backlog = new Backlog();
  private readonly ages: InputAges;
  private generation: number;
  private size: Buffer | null = null;
  private isEnded = false;
  /** True while nothing is sent until the agent has sent its place. */
  private isHeld = false;
  /** True until the first `place` of a new agent socket. */
  private isFirst = false;

  constructor(options: InputRelayOptions) {
    this.options = options;
    this.generation = options.generation;
    this.ages = new InputAges(options.clock);
  }

  /** Input offset up to which the agent has taken input. */
  get taken(): number {
    return this.backlog.start;
  }

  /** Input offset up to which input has arrived. A new writer continues here. */
  get end(): number {
    return this.backlog.end;
  }

  /** Age in milliseconds of the oldest input that the agent has not taken; 0 without one. */
  get age(): number {
    return this.ages.age(this.backlog.start);
  }

  /** Takes input of the writer without duplicates and gaps. Returns false when it exceeds the limit. */
  take(offset: number, bytes: Buffer): boolean {
    const from = this.end;
    if (offset > from || offset + bytes.length <= from) return true;
    const fresh = bytes.subarray(from - offset);
    if (this.backlog.length + fresh.length > TERMINAL_LIMITS.inputBacklog + TERMINAL_LIMITS.input) return false;
    this.backlog.append(fresh);
    this.ages.typed(this.end);
    if (!this.isHeld) this.options.send(inputFrame(from, fresh));
    return true;
  }

  /** Handles an acknowledgement. Agents of older versions send it instead of `place`. */
  acked(consumed: number): void {
    this.backlog.dropBefore(consumed);
    this.ages.dropBefore(this.backlog.start);
    if (!this.isHeld) return;
    this.isHeld = false;
    this.sendFrom(this.backlog.start);
  }

  resize(cols: number, rows: number): void {
    this.generation = (this.generation + 1) % 2 ** 32;
    this.size = resizeFrame(cols, rows, this.generation);
    this.options.send(this.size);
  }

  /** Ends the input. */
  close(): void {
    this.isEnded = true;
    if (!this.isHeld) this.options.send(eofFrame());
  }

  /** Sends missing input to an agent that has connected and whose program has taken input up to `taken`. */
  agentAttached(taken: number): void {
    if (taken > this.backlog.end) this.restart(taken);
    else this.backlog.dropBefore(taken);
    this.ages.dropBefore(this.backlog.start);
    if (this.size !== null) this.options.send(this.size);
    this.options.send(anewFrame());
    this.isFirst = true;
    this.isHeld = this.age > FRESH;
    if (!this.isHeld) this.sendFrom(this.backlog.start);
  }

  /**
   * Handles `place` of the agent: it has input up to the offset and asks for the rest. Drops stale input, because the client has
   * it too and knows its age.
   * @param mayForget whether the client can resend input, or there is no client
   * @returns the offset at which the client continues; null when it need not know
   */
  placed(offset: number, mayForget: boolean): number | null {
    const { isFirst } = this;
    this.isFirst = false;
    if (isFirst && !this.isHeld) return null;
    this.isHeld = false;
    this.options.send(anewFrame());
    if (offset > this.backlog.end) this.restart(offset);
    const from = Math.max(offset, this.backlog.start);
    if (mayForget && this.ages.age(from) > FRESH) {
      this.backlog.dropFrom(from);
      this.ages.dropFrom(from);
      this.isEnded = false;
      return from;
    }
    this.sendFrom(from);
    return null;
  }

  private restart(offset: number): void {
    this.backlog.restart(offset);
    this.ages.dropBefore(offset);
  }

  private sendFrom(start: number): void {
    for (let at = start; at < this.backlog.end; ) {
      const piece = this.backlog.read(at, TERMINAL_LIMITS.input);
      if (piece === null) break;
      this.options.send(inputFrame(piece.offset, piece.bytes));
      at += piece.bytes.length;
    }
    if (this.isEnded) this.options.send(eofFrame());
  }
}
