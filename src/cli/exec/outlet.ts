/** Standard output, or standard error, for what remote programs write: tells when bytes are out, and when nobody reads. */
import { isReaderGone } from '../render/output-failure.js';
import type { OutputStream } from '../render/printer.js';
import { setBlocking } from '../terminal/terminal-output.js';

export interface Outlet {
  readonly isTerminal: boolean;
  /** Whoever read it is gone: what is written is dropped. */
  readonly closed: boolean;
  /** What else than that makes it impossible to write. */
  readonly problem: Error | null;
  /** @param done called once the bytes have reached the reader's side, or nobody reads any more */
  write(bytes: Uint8Array | string, done: () => void): void;
  stop(): void;
}

export interface OutletOptions {
  readonly stream: OutputStream;
  /** Called before anything is written: the place to take a live line away. */
  onWrite(): void;
  /** Once, when the reader is gone. */
  onClosed(): void;
}

export function openOutlet({ stream, onWrite, onClosed }: OutletOptions): Outlet {
  let closed = false;
  let problem: Error | null = null;
  const close = (error: Error) => {
    if (closed) return;
    closed = true;
    if (!isReaderGone(error)) problem = error;
    onClosed();
  };
  stream.on('error', close);
  // A terminal that is stopped (Ctrl-S) must not stop Ctrl-C and the other agents.
  if (stream.isTTY) setBlocking(stream, false);
  return {
    isTerminal: stream.isTTY === true,
    get closed() {
      return closed;
    },
    get problem() {
      return problem;
    },
    write: (bytes, done) => {
      if (closed || bytes.length === 0) return done();
      onWrite();
      stream.write(bytes, (error) => {
        if (error) close(error);
        done();
      });
    },
    stop: () => {
      if (stream.isTTY) setBlocking(stream, true);
      // An error that comes late must find a listener, or it ends the process.
      stream.on('error', () => undefined);
      stream.off('error', close);
    },
  };
}
