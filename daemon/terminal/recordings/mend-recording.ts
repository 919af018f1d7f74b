/** Cuts what is torn off the end of a recording that nobody writes any more. */
import { type FileHandle, open } from 'node:fs/promises';
import { eventLine } from '../../../src/recording/cast-event.js';

const LF = 10;
/** Read in one go, in bytes. */
const PORTION = 64 * 1024;

/**
 * Leaves the file with whole lines, of which the last says why there are no more; never rejects, as nothing is left to be done
 * about a disk that does not take it.
 * @param at seconds from the start
 */
export async function mendRecording(path: string, at: number, text: string): Promise<void> {
  let file: FileHandle | null = null;
  try {
    file = await open(path, 'r+');
    const end = await endOfLines(file);
    await file.truncate(end);
    await file.write(eventLine(Math.round(at * 1000) / 1000, 'm', text), end);
    await file.datasync();
  } catch {
  } finally {
    await file?.close().catch(() => {});
  }
}

/** Bytes of the whole lines in it. */
async function endOfLines(file: FileHandle): Promise<number> {
  const chunk = Buffer.alloc(PORTION);
  for (let { size: to } = await file.stat(); to > 0; ) {
    const from = Math.max(0, to - PORTION);
    const { bytesRead } = await file.read(chunk, 0, to - from, from);
    const last = chunk.subarray(0, bytesRead).lastIndexOf(LF);
    if (last >= 0) return from + last + 1;
    to = from;
  }
  return 0;
}
