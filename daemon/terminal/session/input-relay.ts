/** The input of a session on its way to the agent: kept until the agent has it, so that a lost socket costs no keystroke. */
import type { Clock } from '../../../src/kernel/clock.js';
import { Backlog } from '../../../src/terminal/backlog.js';
import { anewFrame, eofFrame, inputFrame, resizeFrame } from '../../../src/terminal/frames.js';
import { InputAges } from '../../../src/terminal/late-input.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';

export interface InputRelayOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  /** To the agent; what is sent while it is away is sent again when it is back. */
  readonly send: (data: Buffer) => void;
  /** Of the sizes; above that of every size that the agent has seen. */
  readonly generation: number;
}

/** Input that has waited for longer is not sent again unless its client still means it, in milliseconds. */
const FRESH = 5_000;

export class InputRelay {
  private readonly options: InputRelayOptions;
  private readonly backlog = new Backlog();
  private readonly ages: InputAges;
  private generation: number;
  private size: Buffer | null = null;
  private isEnded = false;
  /** Nothing is sent until the agent has said what it has. */
  private isHeld = false;
  /** The agent has just come. */
  private isFirst = false;

  constructor(options: InputRelayOptions) {
    this.options = options;
    this.generation = options.generation;
    this.ages = new InputAges(options.clock);
  }

  /** The agent has taken all before it. */
  get taken(): number {
    return this.backlog.start;
  }

  /** All before it has come from operators; the next one to write goes on here. */
  get end(): number {
    return this.backlog.end;
  }

  /** Milliseconds since the first input came that the agent has not taken; 0 without one. */
  get age(): number {
    return this.ages.age(this.backlog.start);
  }

  /** Input of the one who writes; what is here already is left out, and what leaves a gap. False when it is too much. */
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

  /** The agent has taken input up to there. One of an older version says no more than that about what it has. */
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

  /** No more input follows. */
  close(): void {
    this.isEnded = true;
    if (!this.isHeld) this.options.send(eofFrame());
  }

  /** The agent is here, and its program has taken input up to there: sends what it is missing. */
  agentCame(taken: number): void {
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
   * The agent has input up to there, and asks for the rest. Stale input is not sent again but forgotten: its client
   * has all of it, and knows since when.
   * @param mayForget the client can send it again, or there is none
   * @returns where the client is to go on; null when it need not know
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
