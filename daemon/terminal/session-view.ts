/** Sessions as operators see them: what the store has, and of those that are open how they are now. */
import type { TerminalDetail, TerminalSession } from '../../src/contract/terminal.js';
import { toSeconds } from '../../src/kernel/clock.js';
import type { LiveSession, SessionNow } from './session/live-session.js';
import type { TerminalRow } from './session-store.js';

/** Undefined while only the store knows of it. */
const nowOf = ({ status }: TerminalRow, live: LiveSession | undefined): SessionNow | undefined =>
  status === 'active' ? (live?.now ?? undefined) : undefined;

export function sessionView(row: TerminalRow, live: LiveSession | undefined): TerminalSession {
  const now = nowOf(row, live);
  return {
    session_id: row.session_id,
    node_id: row.node_id,
    status: row.status,
    opened_at: toSeconds(row.opened_at),
    closed_at: row.closed_at === null ? null : toSeconds(row.closed_at),
    node_name: row.node_name,
    kind: row.kind,
    operator_id: row.operator_id,
    operator: row.operator,
    user: row.user,
    shell: row.shell,
    command: row.command_json === null ? null : (JSON.parse(row.command_json) as string[]),
    reason: row.reason,
    exit_code: row.exit_code,
    exit_signal: row.exit_signal,
    recording: now?.recording ?? row.recording,
    output_bytes: now?.outputBytes ?? row.output_bytes,
    writer: now?.writer ?? null,
    viewers: now?.viewers ?? [],
  };
}

/** @param transcript the file of the recording that is there, relative to the data directory; null for none */
export function sessionDetail(
  row: TerminalRow,
  live: LiveSession | undefined,
  transcript: string | null,
): TerminalDetail {
  const size = nowOf(row, live)?.size ?? row;
  return {
    ...sessionView(row, live),
    transcript_path: transcript,
    transcript_sha256: row.transcript_sha256,
    cols: size.cols,
    rows: size.rows,
  };
}
