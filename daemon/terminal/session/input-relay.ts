/** The input of a session on its way to the agent: kept until the agent has it, so that a lost socket costs no keystroke. */
import { Backlog } from '../../../src/terminal/backlog.js';
import { eofFrame, inputFrame, resizeFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_LIMITS } from '../../../src/terminal/limits.js';

export interface InputRelayOptions {
  /** To the agent; what is sent while it is away is sent again when it is back. */
  readonly send: (data: Buffer) => void;
  /** Of the sizes; above that of every size that the agent has seen. */
  readonly generation: number;
}

export class InputRelay {
  private readonly options: InputRelayOptions;
  private readonly backlog = new Backlog();
  private generation: number;
  private size: Buffer | null = null;
  private isEnded = false;

  constructor(options: InputRelayOptions) {
    this.options = options;
    this.generation = options.generation;
  }

  /** The agent has taken all before it. */
  get taken(): number {
    return this.backlog.start;
  }

  /** All before it has come from operators; the next one to write goes on here. */
  get end(): number {
    return this.backlog.end;
  }

  /** Input of the one who writes; what is here already is left out, and what leaves a gap. False when it is too much. */
  take(offset: number, bytes: Buffer): boolean {
    const from = this.end;
    if (offset > from || offset + bytes.length <= from) return true;
    const fresh = bytes.subarray(from - offset);
    if (this.backlog.length + fresh.length > TERMINAL_LIMITS.inputBacklog + TERMINAL_LIMITS.input) return false;
    this.backlog.append(fresh);
    this.options.send(inputFrame(from, fresh));
    return true;
  }

  /** The agent has taken input up to there. */
  acked(consumed: number): void {
    this.backlog.dropBefore(consumed);
  }

  resize(cols: number, rows: number): void {
    this.generation = (this.generation + 1) % 2 ** 32;
    this.size = resizeFrame(cols, rows, this.generation);
    this.options.send(this.size);
  }

  /** No more input follows. */
  close(): void {
    this.isEnded = true;
    this.options.send(eofFrame());
  }

  /** The agent is here, and has input up to there: sends what it is missing. */
  agentCame(taken: number): void {
    if (taken > this.backlog.end) this.backlog.restart(taken);
    else this.backlog.dropBefore(taken);
    if (this.size !== null) this.options.send(this.size);
    for (let at = this.backlog.start; at < this.backlog.end; ) {
      const piece = this.backlog.read(at, TERMINAL_LIMITS.input);
      if (piece === null) break;
      this.options.send(inputFrame(piece.offset, piece.bytes));
      at += piece.bytes.length;
    }
    if (this.isEnded) this.options.send(eofFrame());
  }
}
