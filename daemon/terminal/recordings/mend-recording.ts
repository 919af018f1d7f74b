/** Cuts what is torn off the end of a recording that nobody writes any more. */
import { type FileHandle, open } from 'node:fs/promises';
import { eventLine, parseEvent } from '../../../src/terminal/recording/cast-format.js';
import { MAX_LINE_BYTES } from '../../../src/terminal/recording/read-cast.js';

const LF = 10;
/** Read in one go, in bytes. */
const PORTION = 64 * 1024;
/** Stands for bytes that are no text; the exact ones are in the next line. */
const REPLACEMENT = '\ufffd';

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

/** Bytes of the whole lines in it, without a last one whose exact bytes may have been in the next. */
async function endOfLines(file: FileHandle): Promise<number> {
  const { size } = await file.stat();
  const end = await lineBefore(file, size);
  const start = await lineBefore(file, end - 1);
  if (end - start > MAX_LINE_BYTES) return end;
  const last = Buffer.alloc(Math.max(0, end - start));
  await file.read(last, 0, last.length, start);
  const event = parseEvent(last.toString('utf8'));
  return event?.code === 'o' && event.data.includes(REPLACEMENT) ? start : end;
}

/** Where the last line begins, or would begin, of what is before that. */
async function lineBefore(file: FileHandle, before: number): Promise<number> {
  const chunk = Buffer.alloc(PORTION);
  for (let to = before; to > 0; ) {
    const from = Math.max(0, to - PORTION);
    const { bytesRead } = await file.read(chunk, 0, to - from, from);
    const last = chunk.subarray(0, bytesRead).lastIndexOf(LF);
    if (last >= 0) return from + last + 1;
    to = from;
  }
  return 0;
}
