/** What it means when an answer cannot be written. */
import { Fault, messageOf, systemCodeOf } from '../../kernel/fault.js';

const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']);

/** Whoever read it has left: nothing is wrong then. */
export const isReaderGone = (error: unknown): boolean => GONE.has(systemCodeOf(error));

/** For everything else, such as a full disk. */
export const notWritten = (cause: unknown): Fault =>
  new Fault('internal', `the answer could not be written: ${messageOf(cause)}`, {
    hint: 'what was written of it is not all',
    cause,
  });
