/**
 * Recordings of sessions that the store does not know. After a restore from backup they get a row, so that they can be listed,
 * read and pruned. Empty ones of sessions that a crash kept from being stored are deleted.
 */

import { readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { messageOf } from '../../../src/kernel/fault.js';
import { isNodeId } from '../../../src/kernel/ids.js';
import type { CastHead, CastSession } from '../../../src/terminal/recording/cast-format.js';
import { openCastFile, readCast } from '../../../src/terminal/recording/read-cast.js';
import { type ScannedCast, scanCast } from '../../../src/terminal/recording/scan-cast.js';
import { operatorIdsOfName } from '../../auth/operator-store.js';
import type { Core } from '../../core/core.js';
import type { Queryable } from '../../database/schema.js';
import { factsOfRow } from '../session/session-core.js';
import { foundEvent, insertTerminal, knownTerminals, type TerminalRow } from '../session-store.js';
import { listRecordings, type RecordingFile } from './recording-files.js';

export interface StrayOptions extends Pick<Core, 'db' | 'logger' | 'uow'> {
  readonly dataDir: string;
  /** Reports whether a session is open or being opened, and therefore maybe not stored yet. */
  readonly isActive: (sessionId: string) => boolean;
  /** Returns the time in Unix milliseconds before which an earlier copy of the store may have known sessions. */
  readonly since: () => Promise<number>;
  /** Aborts the work; the next start does the rest. */
  readonly signal: AbortSignal;
}

/** Adopts or deletes unknown recordings; never rejects. Call it once at the start. */
export async function adoptStrayRecordings(options: StrayOptions): Promise<void> {
  const { db, dataDir, isActive, logger, signal } = options;
  try {
    // Checked before the store is read, because a session that has ended is stored.
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

/** Handles one file. Returns true when it got a row. */
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

/** Operator ID for a recording whose operator name matches no operator or several. */
const UNKNOWN_OPERATOR = '0'.repeat(32);

async function adopt(stray: Stray, { uow }: StrayOptions): Promise<void> {
  await uow.write(async (tx, emit) => {
    const [operatorId, ...others] = await operatorIdsOfName(tx, stray.session.operator);
    const row = strayRow(stray, operatorId === undefined || others.length > 0 ? UNKNOWN_OPERATOR : operatorId);
    await insertTerminal(tx, row);
    emit(foundEvent(factsOfRow(row), { file: stray.file.name, sha256: stray.sha256, bytes: stray.bytes }));
  });
}

/** Maximum bytes of an incomplete first line. */
const LONGEST_HEAD = 256 * 1024;

/** Reports whether the file ends within its first line, so that it has no output. */
async function isBarelyBegun(path: string): Promise<boolean> {
  const entry = await stat(path);
  if (!entry.isFile() || entry.size > LONGEST_HEAD) return false;
  const bytes = await readFile(path);
  const end = bytes.indexOf(10);
  return end < 0 || bytes.indexOf(10, end + 1) < 0;
}

/** Returns the recordings of sessions without a row. */
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

/** Facts about an unknown session from its recording. */
interface Stray {
  readonly file: RecordingFile;
  readonly session: CastSession;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly closedAt: number;
  readonly term: string;
  readonly cols: number;
  readonly rows: number;
  readonly recording: 'complete' | 'truncated' | 'failed';
  /** Hex SHA-256 of the whole plain file; null when it is damaged. */
  readonly sha256: string | null;
  /** Output bytes. */
  readonly bytes: number;
  /** Exit status of the program; null without one. */
  readonly status: number | null;
  /** True when the recording has no events. */
  readonly isEmpty: boolean;
}

/**
 * Reads the facts of a recording. Returns null when it does not start like a recording of that session.
 * @param signal aborts with a rejection
 */
async function readStray(path: string, file: RecordingFile, signal: AbortSignal): Promise<Stray | null> {
  const head = await headOf(path);
  const session = head?.orch;
  if (head === null || session?.session !== file.sessionId || !isNodeId(session.node)) return null;
  const { mtimeMs } = await stat(path);
  const openedAt = timeOf(head) ?? Math.floor(mtimeMs);
  const common = { file, session, openedAt, term: head.env?.TERM ?? '' };
  let isEmpty = true;
  let isStopped = false;
  let status: number | null = null;
  let scanned: ScannedCast;
  try {
    scanned = await scanCast(addAbortSignal(signal, await openCastFile(path)), (events) => {
      isEmpty = false;
      for (const event of events) {
        if (event.code === 'm') isStopped ||= event.data.startsWith('recording stopped: ');
        else if (event.code === 'x') status = statusOf(event.data);
      }
    });
  } catch {
    signal.throwIfAborted();
    const size = { cols: head.width, rows: head.height };
    const closedAt = Math.max(openedAt, Math.floor(mtimeMs));
    return { ...common, ...size, closedAt, recording: 'failed', sha256: null, bytes: 0, isEmpty: false, status };
  }
  const { at, cols, rows, offset: bytes, size, fileSize, sha256 } = scanned;
  // Only a cleanly closed recording is compressed and ends with a checkpoint.
  const isWhole = file.name !== file.path && size === fileSize && !isStopped;
  const closedAt = Math.min(openedAt + Math.round(at * 1000), LATEST);
  const recording = isWhole ? 'complete' : 'truncated';
  return {
    ...common,
    ...{ cols, rows, closedAt, recording, sha256, bytes },
    status,
    isEmpty: isEmpty && size === fileSize,
  };
}

/** Latest representable date. */
const LATEST = Date.UTC(9999, 0);

/** Returns the start in Unix milliseconds; null without one. */
function timeOf({ timestamp }: CastHead): number | null {
  const at = Math.round((timestamp ?? -1) * 1000);
  return at >= 0 && at <= LATEST ? at : null;
}

async function headOf(path: string): Promise<CastHead | null> {
  try {
    const chunks = await openCastFile(path);
    const { head } = await readCast(chunks);
    chunks.destroy();
    return head;
  } catch {
    return null;
  }
}

/** Returns the row of an adopted session. @param operatorId ID of its operator */
function strayRow(stray: Stray, operatorId: string): TerminalRow {
  const { session, file, recording } = stray;
  return {
    session_id: session.session,
    node_id: session.node,
    node_name: session.node_name,
    operator_id: operatorId,
    operator: session.operator,
    kind: session.command === null ? 'shell' : 'exec',
    user: null,
    shell: session.shell,
    command: session.command,
    cols: clamped(stray.cols),
    rows: clamped(stray.rows),
    term: stray.term,
    status: 'interrupted',
    reason: 'store_restored',
    exit_code: stray.status,
    exit_signal: null,
    opened_at: stray.openedAt,
    closed_at: stray.closedAt,
    recording,
    transcript: file.path,
    transcript_sha256: stray.sha256,
    output_bytes: stray.bytes,
    resume_hash: null,
    resume_operator_id: null,
  };
}

const statusOf = (text: string): number | null => (/^\d{1,3}$/.test(text) ? Number(text) : null);

/** Clamps to the sizes of the API. */
const clamped = (cells: number): number => Math.min(Math.max(cells, 1), 1_000);
