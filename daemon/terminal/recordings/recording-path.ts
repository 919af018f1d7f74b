/** Where recordings are: `transcripts/YYYY-MM/<session>.cast`, and `.gz` behind that once it is compressed. */
import { toTimestamp } from '../../../src/kernel/clock.js';
import { Fault } from '../../../src/kernel/fault.js';
import { isUlid } from '../../../src/kernel/ids.js';

/** Of the data directory. */
export const TRANSCRIPTS = 'transcripts';

/**
 * Relative to the data directory.
 * @param openedAt Unix milliseconds
 */
export function recordingPath(sessionId: string, openedAt: number): string {
  if (!isUlid(sessionId)) throw new Fault('internal', `"${sessionId}" is no session ID`);
  return `${TRANSCRIPTS}/${toTimestamp(openedAt).slice(0, 7)}/${sessionId}.cast`;
}

/** The names that a recording may have, in the order in which to look for them. */
export const namesOf = (path: string): readonly string[] => [path, `${path}.gz`];
