/** Opens the file of a recording, gzipped or not. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { Fault } from '../kernel/fault.js';

export interface OpenOptions {
  /** Ends behind that many bytes of a plain file; null at its end. */
  readonly length?: number | null;
}

/**
 * The plain bytes. The file is closed when they were read, when the loop over them is left, or when the stream is destroyed.
 * @throws the system's error when it cannot be opened, Fault `transcript_invalid` for what is no regular file; gzip that is broken ends the stream with an error of zlib
 */
export async function openCastFile(path: string, { length = null }: OpenOptions = {}): Promise<Readable> {
  const file = await openRegularFile(path);
  try {
    const start = Buffer.alloc(2);
    const { bytesRead } = await file.read(start, 0, 2, 0);
    if (bytesRead === 2 && start[0] === 0x1f && start[1] === 0x8b) {
      // Whichever of both ends early takes the other one along.
      return pipeline(file.createReadStream({ start: 0 }), createGunzip(), () => undefined);
    }
    if (length !== 0) return file.createReadStream({ start: 0, ...(length === null ? {} : { end: length - 1 }) });
  } catch (error) {
    await file.close();
    throw error;
  }
  await file.close();
  return Readable.from([]);
}

/**
 * Opens a file to read it.
 * @throws the system's error when it cannot be opened, Fault `transcript_invalid` for what is no regular file
 */
export async function openRegularFile(path: string): Promise<FileHandle> {
  // Without waiting for whoever might write into a FIFO of that name.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new Fault('transcript_invalid', `${path} is no regular file`);
}
