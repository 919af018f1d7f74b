/**
 * Recordings of sessions that the store knows nothing of: those since a backup that was put back, which get a row so that they are
 * found, read and deleted like others, and empty ones of sessions that a crash kept from being stored, which are deleted.
 */
import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../src/kernel/fault.js';
import type { Logger } from '../../../src/kernel/logger.js';
import { operatorIdsOfName } from '../../auth/operator-store.js';
import type { UnitOfWork } from '../../core/unit-of-work.js';
import type { Queryable } from '../../database/schema.js';
import { factsOfRow } from '../session/session-facts.js';
import { foundEvent } from '../session-events.js';
import { insertTerminal } from '../session-store.js';
import { listRecordings, type RecordingFile, unknownAmong } from './recording-files.js';
import { readStray, type Stray, strayRow } from './stray-recording.js';

export interface StrayOptions {
  readonly db: Queryable;
  readonly uow: UnitOfWork;
  readonly logger: Logger;
  readonly dataDir: string;
  /** A session that is open or being opened: what it has may not be stored yet. */
  readonly isActive: (sessionId: string) => boolean;
  /** Until when other stores than this one may have known of sessions, in Unix milliseconds. */
  readonly since: () => Promise<number>;
  /** Ends it early: what is left is taken up at the next start. */
  readonly signal: AbortSignal;
}

/** Never rejects. To be called once at the start. */
export async function takeUpStrays(options: StrayOptions): Promise<void> {
  const { db, dataDir, isActive, logger, signal } = options;
  try {
    // Asked before the store is: what is over by then is stored.
    const files = (await listRecordings(dataDir)).filter(({ sessionId }) => !isActive(sessionId));
    const found: string[] = [];
    for (const file of await unknownAmong(db, files)) {
      if (signal.aborted) break;
      if (await takeUp(file, options)) found.push(file.sessionId);
    }
    if (found.length === 0) return;
    logger.warn('recordings of sessions that the store did not know were found, and are listed again', {
      count: found.length,
      first: found.slice(0, NAMED),
      hint: 'orch term list --all',
    });
  } catch (error) {
    logger.error('recordings could not be compared with the store', { reason: messageOf(error) });
  }
}

const NAMED = 10;

/** True for one that has a row now. */
async function takeUp(file: RecordingFile, options: StrayOptions): Promise<boolean> {
  const { dataDir, logger, signal, since } = options;
  const path = join(dataDir, file.name);
  try {
    const stray = await readStray(path, file, signal);
    if (stray === null && !(await isBarelyBegun(path))) {
      logger.warn('a file among the recordings is none, and is left alone', { file: file.name });
      return false;
    }
    const begunAt = stray?.openedAt ?? (await stat(path)).mtimeMs;
    if ((stray === null || stray.isEmpty) && begunAt >= (await since())) {
      await rm(path, { force: true });
      logger.info('an empty recording of a session that was never opened was deleted', { file: file.name });
      return false;
    }
    if (stray === null) return false;
    await adopt(stray, options);
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    logger.warn('a recording of an unknown session could not be taken up', {
      file: file.name,
      reason: messageOf(error),
    });
    return false;
  }
}

/** Stands for the operator of a recording whose name no operator had, or several. */
const UNKNOWN_OPERATOR = '0'.repeat(32);

async function adopt(stray: Stray, { uow }: StrayOptions): Promise<void> {
  await uow.write(async (tx, emit) => {
    const [operatorId, ...others] = await operatorIdsOfName(tx, stray.session.operator);
    const row = strayRow(stray, operatorId === undefined || others.length > 0 ? UNKNOWN_OPERATOR : operatorId);
    await insertTerminal(tx, row);
    emit(foundEvent(factsOfRow(row), { file: stray.file.name, sha256: stray.sha256, bytes: stray.bytes }));
  });
}

/** Longest of a first line that a crash has torn, in bytes. */
const LONGEST_HEAD = 256 * 1024;

/** Torn before any output can have come behind its first line. */
async function isBarelyBegun(path: string): Promise<boolean> {
  const entry = await stat(path);
  if (!entry.isFile() || entry.size > LONGEST_HEAD) return false;
  const bytes = await readFile(path);
  const end = bytes.indexOf(10);
  return end < 0 || bytes.indexOf(10, end + 1) < 0;
}
