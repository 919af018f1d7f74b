/** The running program of a session, on a terminal or on pipes. */
import type { OutputStream, Reading } from '../../terminal/frames.js';
import type { TerminalSignal } from '../../terminal/notes.js';
import type { SessionMark } from './process-table.js';

export interface ProgramEnd {
  /** Exit status; null when a signal ended the program. */
  readonly code: number | null;
  /** Name of the signal without `SIG`. */
  readonly signal: string | null;
  /** True after a timeout. */
  readonly timedOut: boolean;
  /** True if a process that the program left behind still had the output open, so that its later output is missing. */
  readonly isOutputOpen?: boolean;
}

export interface ProgramListener {
  /** Receives output and owns the bytes. */
  output(bytes: Buffer, stream: OutputStream): void;
  /** Receives the total number of input bytes that the system has taken. */
  inputTaken(total: number): void;
  /** Called after all output, as the last call. */
  ended(end: ProgramEnd): void;
}

/** Methods have no effect after the program has ended, because its ID and descriptors may be reused. */
export interface Program {
  readonly mark: SessionMark;
  /** Pauses reading, which starts paused. A little more output may follow. */
  pause(): void;
  resume(): void;
  /** Queues input. The listener receives the number of bytes that the system has taken. */
  write(bytes: Buffer): void;
  endInput(): void;
  resize(cols: number, rows: number): void;
  /** Determines how the program reads its terminal; `unknown` without one. */
  readSettings(): Promise<Reading>;
  /** Signals the foreground process group, or what the program has left behind. */
  signal(signal: TerminalSignal): void;
  /** Stops waiting for the output of processes that the program has left behind. */
  stopWaiting(): void;
}
