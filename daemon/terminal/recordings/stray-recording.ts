/** What a recording tells of the session that it is of, for a store that does not know it. */
import { stat } from 'node:fs/promises';
import { addAbortSignal } from 'node:stream';
import { isNodeId } from '../../../src/kernel/ids.js';
import type { CastHead, CastSession } from '../../../src/terminal/recording/cast-format.js';
import { openCastFile, readCast } from '../../../src/terminal/recording/read-cast.js';
import { type ScannedCast, scanCast } from '../../../src/terminal/recording/scan-cast.js';
import type { TerminalRow } from '../session-store.js';
import type { RecordingFile } from './recording-files.js';

export interface Stray {
  readonly file: RecordingFile;
  readonly session: CastSession;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly closedAt: number;
  readonly term: string;
  readonly cols: number;
  readonly rows: number;
  readonly recording: 'complete' | 'truncated' | 'failed';
  /** Of the whole plain file, hex; null when it is damaged. */
  readonly sha256: string | null;
  /** Output. */
  readonly bytes: number;
  /** With which the program ended, when it says so. */
  readonly status: number | null;
  /** Nothing happened in it. */
  readonly isEmpty: boolean;
}

/**
 * Null for what does not begin like a recording of that session.
 * @param signal ends it early: it rejects
 */
export async function readStray(path: string, file: RecordingFile, signal: AbortSignal): Promise<Stray | null> {
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
  // Only what was closed well is compressed with nothing behind its last checkpoint.
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

/** What has a date. */
const LATEST = Date.UTC(9999, 0);

/** When it began, in Unix milliseconds; null when it does not say so. */
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

/** @param operatorId of whoever has opened it */
export function strayRow(stray: Stray, operatorId: string): TerminalRow {
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
    command_json: session.command === null ? null : JSON.stringify(session.command),
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

/** As the API has sizes. */
const clamped = (cells: number): number => Math.min(Math.max(cells, 1), 1_000);
