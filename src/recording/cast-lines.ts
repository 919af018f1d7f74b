/** Cuts the bytes of a file into its lines. */
import { Fault, systemCodeOf } from '../kernel/fault.js';

/** Longest line that is read, in bytes; ours are far shorter, those of others may be long. */
export const LONGEST_LINE = 16 * 1024 * 1024;

/**
 * A line with its end; without one it is torn, and the last.
 * @throws Fault `transcript_invalid` for a line that is too long, and for gzip that is broken
 */
export async function* castLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  try {
    yield* linesOf(chunks);
  } catch (cause) {
    if (!systemCodeOf(cause)?.startsWith('Z_')) throw cause;
    throw new Fault('transcript_invalid', 'the compressed recording is damaged', { cause });
  }
}

async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let from = 0;
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      const line = bytes.subarray(from, end + 1);
      from = end + 1;
      if (parts.length === 0) yield line;
      else yield Buffer.concat([...parts, line]);
      parts = [];
      length = 0;
    }
    if (from === bytes.length) continue;
    parts.push(bytes.subarray(from));
    length += bytes.length - from;
    if (length > LONGEST_LINE) throw new Fault('transcript_invalid', 'the recording holds a line that is far too long');
  }
  if (length > 0) yield Buffer.concat(parts);
}

/** Whether the line is whole. */
export const isWhole = (line: Buffer): boolean => line[line.length - 1] === 10;
