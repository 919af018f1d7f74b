/** Hands a long answer on piece by piece, no faster than it is read. */
import { isReaderGone, notWritten } from '../render/output-failure.js';
import type { OutputStream } from '../render/printer.js';

/** @returns false when whoever read it is gone; what it fails with else is thrown */
export async function writeChunks(
  stream: OutputStream,
  chunks: AsyncIterable<Uint8Array | string>,
  signal: AbortSignal,
): Promise<boolean> {
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    if (chunk.length > 0 && !(await writeChunk(stream, chunk))) return false;
  }
  return true;
}

/** Resolves when the bytes have been taken; with false when nobody reads any more. */
export function writeChunk(stream: OutputStream, chunk: Uint8Array | string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    stream.write(chunk, (error: Error | null | undefined) => {
      if (!error) resolve(true);
      else if (isReaderGone(error)) resolve(false);
      else reject(notWritten(error));
    });
  });
}
