/** A terminal session as its operator's end uses it: what one may do with it, whatever carries it. */
import type { Clock } from '../../kernel/clock.js';
import type { TerminalMode, TerminalSignal } from '../../terminal/notes.js';
import type { ApiClient } from '../api-client.js';
import type { TerminalEvents } from './terminal-events.js';

export interface ConnectTerminalOptions {
  readonly api: ApiClient;
  readonly sessionId: string;
  /** As `openTerminal`, `execOnAgent` or `attachTerminal` answered it a moment ago. */
  readonly wsUrl: string;
  /** What it was asked for: that of a session that was just opened is `write`. */
  readonly mode: TerminalMode;
  readonly events: TerminalEvents;
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  /** From 0 to 1, for the pauses between attempts. */
  random(): number;
  /** Input waits for a lost connection for as long as it takes; else it is dropped when it has waited for ten seconds. */
  readonly queueInput: boolean;
  /** Milliseconds after which a lost connection is given up; half an hour when absent. */
  readonly patience?: number;
}
/** Everything may be called at any time, while the connection is lost too; after the end nothing happens any more. */
export interface TerminalSession {
  readonly sessionId: string;
  /** Whether this client holds the pen: null until the orchestrator has said so. */
  readonly mode: TerminalMode | null;
  /** Milliseconds to the orchestrator and back; null while not measured. */
  readonly roundTrip: number | null;
  /** Milliseconds since the first input that the agent has not taken; 0 without one. */
  readonly inputAge: number;
  /**
   * Takes input of any length. Without the pen it is dropped.
   * @returns false when it would be better to wait for `drain` before more is given
   */
  sendInput(bytes: Uint8Array): boolean;
  /** Offset behind the input that was given so far; null while it may still be dropped, for want of a connection or of the pen. */
  readonly inputEnd: number | null;
  /** Asks where the input before that offset stands; only while connected. Agents of earlier versions do not answer. */
  askEcho(offset: number): void;
  /** No more input follows what was given so far. */
  sendEof(): void;
  /** The newest size counts; it is told again after each reconnect. Without the pen it is kept for when there is one. */
  resize(cols: number, rows: number): void;
  /** To the foreground process group of the program; only while connected. */
  signal(name: TerminalSignal): void;
  /** Asks for a snapshot. */
  redraw(): void;
  /** Asks whoever holds the pen for it. */
  askPen(): void;
  /** Asks for a `latency` note; `roundTrip` is brought up to date too. */
  askLatency(): void;
  /** Ends the session and its program. The exit follows as the end. */
  close(): void;
  /** Lets go; the session goes on. The end follows. */
  detach(): void;
}
