/** Where the output of a command on one agent goes. */
import type { OutputStream } from '../../terminal/frames.js';

export interface ExecSink {
  /** @param done called when the bytes need no place here any more */
  output(stream: OutputStream, bytes: Buffer, done: () => void): void;
  /** No more follows. Resolves when all is out. */
  end(): Promise<void>;
}
