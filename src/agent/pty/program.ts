/** A running program of a session, on a terminal or on pipes. */
import type { OutputStream, Reading } from '../../terminal/frames.js';
import type { TerminalSignal } from '../../terminal/notes.js';
import type { SessionMark } from './process-table.js';

export interface ProgramEnd {
  /** Null when a signal ended it. */
  readonly code: number | null;
  /** Without `SIG`. */
  readonly signal: string | null;
  /** Its time was over. */
  readonly timedOut: boolean;
}

export interface ProgramListener {
  /** The bytes are the listener's. */
  output(bytes: Buffer, stream: OutputStream): void;
  /** The system has taken so many bytes of input in all. */
  tookInput(total: number): void;
  /** Nothing follows: all output was given. */
  ended(end: ProgramEnd): void;
}

/** Nothing of it does anything once the program has ended: process ids and descriptors are given to others then. */
export interface Program {
  readonly mark: SessionMark;
  /** Stops and goes on with reading; it begins stopped. A little more may come after a stop. */
  pause(): void;
  resume(): void;
  /** Takes all of it at once; how far it went is told to the listener. */
  write(bytes: Buffer): void;
  endInput(): void;
  resize(cols: number, rows: number): void;
  /** How its terminal is read now; `unknown` without a terminal. */
  readSettings(): Promise<Reading>;
  /** To what runs in the foreground. */
  signal(signal: TerminalSignal): void;
}
