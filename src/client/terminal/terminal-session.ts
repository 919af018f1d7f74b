/** A terminal session as its operator's end uses it: what one may do with it, whatever carries it. */
import type { Clock } from '../../kernel/clock.js';
import type { Fault } from '../../kernel/fault.js';
import type { Exit } from '../../terminal/exit.js';
import type { EchoAck, OutputStream } from '../../terminal/frames.js';
import type { ServerNote, SnapshotHead, TerminalMode, TerminalSignal } from '../../terminal/notes.js';
import type { ApiClient } from '../api-client.js';

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

/** What a terminal's connection tells its owner. Nothing of it knows of a TTY. */
export type LinkState =
  /** Everything goes through. `resumed`: after a loss, with nothing missing and nothing twice. */
  | { readonly kind: 'connected'; readonly resumed: boolean }
  /** The orchestrator has not answered a ping for a while; the connection may be dead. */
  | { readonly kind: 'silent' }
  /** The connection is gone; it is made anew until the patience is over. */
  | { readonly kind: 'lost'; readonly cause: Fault };

/** How it was over. */
export type TerminalEnd =
  /** `complete`: all of its output was handed out before. */
  | { readonly kind: 'exit'; readonly exit: Exit; readonly complete: boolean }
  /** The client let go; the session goes on. */
  | { readonly kind: 'detached' }
  /** Another connection of the same client has taken over. */
  | { readonly kind: 'replaced' }
  /** The connection is lost for good, or this operator may not any more. The session may go on. */
  | { readonly kind: 'failed'; readonly fault: Fault };

export interface Snapshot {
  readonly head: SnapshotHead;
  /** Draw the screen. */
  readonly bytes: Buffer;
  /** Bytes of output that were not sent because the snapshot stands in for them; 0 for a client that attaches anew. */
  readonly skipped: number;
}

/** Called one after the other, never inside of a call of the connection's methods. */
export interface TerminalEvents {
  /**
   * Output, in order, each byte once. `done` has to be called when the bytes have reached their destination, in the order in
   * which they came: only then more than a window of them is sent.
   * @param bytes must not be changed
   */
  output(stream: OutputStream, bytes: Buffer, done: () => void): void;
  /** The whole screen as it is now, instead of output that is not repeated. Commands without a terminal have none. */
  snapshot(snapshot: Snapshot, done: () => void): void;
  /** Welcome and people first bring up to date what `mode` of the connection says. */
  note(note: ServerNote): void;
  state(state: LinkState): void;
  /** Answers `askEcho`, behind all output that the answer speaks of. */
  echo?(ack: EchoAck): void;
  /** There is room for input again after `sendInput` gave false. */
  drain(): void;
  /** So much input was dropped as one, because its beginning had waited too long for the connection. */
  inputDropped(bytes: number): void;
  /** Once, as the last: after all output has been handed out and is `done`. */
  ended(end: TerminalEnd): void;
}
