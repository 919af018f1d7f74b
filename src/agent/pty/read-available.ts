/**
 * Reads what is there without waiting. A timer that waits for the end of output needs it: after a turn that took long, Node runs
 * timers before it reads, so silence up to then proves nothing.
 */
import { readSync } from 'node:fs';

const PIECE = 64 * 1024;

/**
 * Reads a non-blocking descriptor until it has nothing, `most` bytes are read, or `take` wants no more.
 * @param take owns the bytes, and returns whether it wants more
 * @returns how many bytes were read
 */
export function readAvailable(descriptor: number, most: number, take: (bytes: Buffer) => boolean): number {
  let total = 0;
  while (total < most) {
    const bytes = Buffer.allocUnsafe(PIECE);
    const count = readOnce(descriptor, bytes);
    if (count === 0) break;
    total += count;
    if (!take(bytes.subarray(0, count))) break;
  }
  return total;
}

/** Returns the number of bytes read: zero when none are there, at the end, and when the descriptor is closed. */
function readOnce(descriptor: number, bytes: Buffer): number {
  try {
    return readSync(descriptor, bytes);
  } catch {
    return 0;
  }
}
