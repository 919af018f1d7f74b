/** The files of recordings that there are, and those among them of which a store knows nothing. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCodeOf } from '../../../src/kernel/fault.js';
import { isUlid } from '../../../src/kernel/ids.js';
import type { Queryable } from '../../database/schema.js';
import { knownTerminals } from '../session-store.js';
import { TRANSCRIPTS } from './recording-path.js';

export interface RecordingFile {
  readonly sessionId: string;
  /** Relative to the data directory; of the plain file, whatever it is called now. */
  readonly path: string;
  /** Relative to the data directory. */
  readonly name: string;
}

const NAME = /^(.{26})\.cast(\.gz)?$/;

/** In order of their months; what has another name than a recording is left out. */
export async function listRecordings(dataDir: string): Promise<readonly RecordingFile[]> {
  const found = new Map<string, RecordingFile>();
  for (const month of (await namesIn(join(dataDir, TRANSCRIPTS))).toSorted()) {
    for (const name of (await namesIn(join(dataDir, TRANSCRIPTS, month))).toSorted()) {
      const [, sessionId = ''] = NAME.exec(name) ?? [];
      // The plain file stands first: a compressed one beside it may be what a crash has left.
      if (!isUlid(sessionId) || found.has(sessionId)) continue;
      const path = `${TRANSCRIPTS}/${month}/${sessionId}.cast`;
      found.set(sessionId, { sessionId, path, name: `${TRANSCRIPTS}/${month}/${name}` });
    }
  }
  return [...found.values()];
}

/** Those of sessions that the store has no row of. */
export async function unknownAmong(db: Queryable, files: readonly RecordingFile[]): Promise<readonly RecordingFile[]> {
  const unknown: RecordingFile[] = [];
  for (let at = 0; at < files.length; at += PAGE) {
    const page = files.slice(at, at + PAGE);
    const known = await knownTerminals(
      db,
      page.map(({ sessionId }) => sessionId),
    );
    unknown.push(...page.filter(({ sessionId }) => !known.has(sessionId)));
  }
  return unknown;
}

const PAGE = 500;

/** Nothing of what is no directory. */
export async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return [];
    throw error;
  }
}
