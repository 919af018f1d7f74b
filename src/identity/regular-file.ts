/** Reads a file that somebody put somewhere: never waits on a pipe, and never reads what has no end. */
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** Opening a pipe that nobody writes to would wait for ever. */
const READ = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Follows links. Throws the system's error, or one that says that it is no regular file or larger than it may be. */
export function readRegularFile(path: string, maxBytes: number): Buffer {
  const descriptor = openSync(path, READ);
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile())
      throw new Error(`it is ${stats.isDirectory() ? 'a directory' : 'a pipe or a device'}, not a file`);
    if (stats.size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    return readBounded(descriptor, maxBytes);
  } finally {
    closeSync(descriptor);
  }
}

/** A file may grow while it is read, and those of /proc do not say how large they are. */
function readBounded(descriptor: number, maxBytes: number): Buffer {
  const parts: Buffer[] = [];
  for (let length = 0; length <= maxBytes; ) {
    const part = Buffer.allocUnsafe(64 * 1024);
    const count = readSync(descriptor, part);
    if (count === 0) return Buffer.concat(parts);
    parts.push(part.subarray(0, count));
    length += count;
  }
  throw new Error(`it is larger than ${maxBytes} bytes`);
}
