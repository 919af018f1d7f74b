/** A terminal session, as the client uses it: options, methods and events, independent of the transport and a TTY. */
import type { Clock } from '../../kernel/clock.js';
import type { Fault } from '../../kernel/fault.js';
import type { Exit } from '../../terminal/exit.js';
import type { EchoAck, OutputStream } from '../../terminal/frames.js';
import type { ServerNote, SnapshotHead, TerminalMode, TerminalSignal } from '../../terminal/notes.js';
import type { ApiClient } from '../api-client.js';

export interface ConnectTerminalOptions {
  readonly api: ApiClient;
  readonly sessionId: string;
  /** Fresh URL from `openTerminal`, `execOnAgent` or `attachTerminal`. */
  readonly wsUrl: string;
  /** Requested mode; `write` for a session that was just opened. */
  readonly mode: TerminalMode;
  readonly events: TerminalEvents;
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  /** Returns a number from 0 to 1, for the pauses between attempts. */
  random(): number;
  /** True if input waits for a lost connection without limit; else it is dropped after ten seconds. */
  readonly queueInput: boolean;
  /** Milliseconds after which reconnecting stops [30 minutes]. */
  readonly reconnectMs?: number;
}
/** All methods may be called at any time, even while disconnected. They have no effect after the end. */
export interface TerminalSession {
  readonly sessionId: string;
  /** Mode of this client; null before the welcome. */
  readonly mode: TerminalMode | null;
  /** Round-trip time to the orchestrator in milliseconds; null before the first measurement. */
  readonly roundTrip: number | null;
  /** Age in milliseconds of the oldest input that the agent has not taken; 0 without one. */
  readonly inputAge: number;
  /**
   * Sends input of any length. Drops it without the pen.
   * @returns false when the caller should wait for `drain`
   */
  sendInput(bytes: Uint8Array): boolean;
  /** Offset after the input so far; null while it may be dropped without a connection or the pen. */
  readonly inputEnd: number | null;
  /** Asks about the echo of input before the offset, while connected. Agents of earlier versions do not answer. */
  askEcho(offset: number): void;
  /** Ends the input. */
  sendEof(): void;
  /** Sets the size, which is resent after each reconnect. Without the pen it is kept for later. */
  resize(cols: number, rows: number): void;
  /** Signals the foreground process group, while connected. */
  signal(name: TerminalSignal): void;
  /** Requests a snapshot. */
  redraw(): void;
  /** Asks the writer for the pen. */
  askPen(): void;
  /** Requests a `latency` note, and updates `roundTrip`. */
  askLatency(): void;
  /** Ends the session and its program. The event `ended` follows with the exit. */
  close(): void;
  /** Detaches while the session continues. The event `ended` follows. */
  detach(): void;
}

/** State of the connection. */
export type LinkState =
  /** Connected. `resumed`: after a loss, without missing or duplicate data. */
  | { readonly kind: 'connected'; readonly resumed: boolean }
  /** A ping is unanswered; the connection may be dead. */
  | { readonly kind: 'silent' }
  /** The connection is lost, and the client reconnects. */
  | { readonly kind: 'lost'; readonly cause: Fault };

/** End of a session for this client. */
export type TerminalEnd =
  /** `complete`: all output was delivered before. */
  | { readonly kind: 'exit'; readonly exit: Exit; readonly complete: boolean }
  /** The client detached; the session continues. */
  | { readonly kind: 'detached' }
  /** Another connection of the same client replaced this one. */
  | { readonly kind: 'replaced' }
  /** The connection is lost for good, or the operator lost access. The session may continue. */
  | { readonly kind: 'failed'; readonly fault: Fault };

export interface Snapshot {
  readonly head: SnapshotHead;
  /** Bytes that draw the screen. */
  readonly bytes: Buffer;
  /** Number of output bytes that the snapshot replaces; 0 for a client that does not resume. */
  readonly skipped: number;
}

/** Events, called one at a time and never inside a method of the session. */
export interface TerminalEvents {
  /**
   * Receives output in order, each byte once. Call `done` in order when the bytes are delivered; without it the output stops after
   * one window.
   * @param bytes must not be modified
   */
  output(stream: OutputStream, bytes: Buffer, done: () => void): void;
  /** Receives the current screen instead of skipped output. Commands without a terminal have none. */
  snapshot(snapshot: Snapshot, done: () => void): void;
  /** Receives a note. `welcome` and `people` update `mode` first. */
  note(note: ServerNote): void;
  state(state: LinkState): void;
  /** Receives the answer to `askEcho`, after all output that it refers to. */
  echo?(ack: EchoAck): void;
  /** Called when more input can be sent after `sendInput` returned false. */
  drain(): void;
  /** Receives the number of input bytes that were dropped because they waited too long. */
  inputDropped(bytes: number): void;
  /** Called once and last, after all output is delivered. */
  ended(end: TerminalEnd): void;
}
