/** What a terminal's connection tells its owner. Nothing of it knows of a TTY. */
import type { Fault } from '../../kernel/fault.js';
import type { Exit } from '../../terminal/exit.js';
import type { EchoAck, OutputStream } from '../../terminal/frames.js';
import type { ServerNote, SnapshotHead } from '../../terminal/notes.js';

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
