/** Views of sessions for operators: the stored row, with the current state of open sessions. */
import type { TerminalDetail, TerminalSession } from '../../src/contract/terminal.js';
import { toSeconds } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { LiveSession, SessionNow } from './session/live-session.js';
import type { TerminalRow } from './session-store.js';

/** Returns the current state of an open session, or undefined when only the store knows it. */
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
    command: row.command === null ? null : [...row.command],
    reason: row.reason,
    exit_code: row.exit_code,
    exit_signal: row.exit_signal,
    recording: now?.recording ?? row.recording,
    output_bytes: now?.outputBytes ?? row.output_bytes,
    writer: now?.writer ?? null,
    viewers: now?.viewers ?? [],
  };
}

/** @param transcript existing file of the recording, relative to the data directory; null without one */
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

export const sessionNotFound = (sessionId: string): Fault =>
  new Fault('terminal_not_found', `there is no terminal session ${JSON.stringify(sessionId)}`, {
    hint: 'see what there is: orch term list',
  });

export const sessionOver = ({ session_id, status, reason }: TerminalRow): Fault =>
  new Fault('terminal_over', `the session ${session_id} is ${status}${reason === null ? '' : ` (${reason})`}`, {
    hint: 'open a new one: orch term open NODE',
  });
