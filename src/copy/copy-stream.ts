/** The local end of a channel that a program of ours reads and writes. */
import { PassThrough, type Readable, type Writable } from 'node:stream';
import type { LocalStream } from '../terminal/channel.js';
import { COPY_LIMITS, lost } from './copy-frames.js';

export interface CopyStream {
  /** For the channel. */
  readonly local: LocalStream;
  /** What the peer sends. */
  readonly input: Readable;
  /** What the peer is sent. */
  readonly output: Writable;
}

export function createCopyStream(): CopyStream {
  const output = new PassThrough({ highWaterMark: COPY_LIMITS.data });
  // The channel takes the close of an input for a loss while the output is open.
  const input = new PassThrough({ highWaterMark: COPY_LIMITS.data, autoDestroy: false });
  for (const stream of [input, output]) stream.on('error', () => undefined);
  const destroy = () => {
    input.destroy(lost());
    output.destroy(lost());
  };
  return { local: { source: output, sink: input, destroy }, input, output };
}
