/** Terminal sessions as tables and details. */
import type { TerminalDetail, TerminalSession } from '../../contract/terminal.js';
import { formatBytes, formatDuration, formatTime, NONE, type TimeCell, textOrNone, tookCell } from '../format.js';
import { type Column, type FieldsView, fieldsOf, type Span, styled, type TableView } from '../outcome.js';

export const SESSION_COLUMNS: readonly Column[] = [
  { title: 'SESSION ID', whole: true },
  { title: 'AGENT' },
  { title: 'OPERATOR' },
  { title: 'STATUS' },
  { title: 'OPENED', whole: true, spare: 3 },
  { title: 'WRITES', spare: 2 },
  { title: 'WATCH', spare: 1 },
  { title: 'PROGRAM' },
  { title: 'USER', wide: true },
  { title: 'TOOK', wide: true },
  { title: 'RECORDING', wide: true },
  { title: 'OUTPUT', wide: true, right: true },
];

/** The table of terminal sessions. */
export const sessionTable = (sessions: readonly TerminalSession[], timeOf: TimeCell, empty: string): TableView => ({
  kind: 'table',
  columns: SESSION_COLUMNS,
  rows: sessions.map((session) => [
    session.session_id,
    nodeOf(session),
    session.operator,
    sessionStatus(session),
    timeOf(session.opened_at),
    textOrNone(session.writer),
    textOrNone(session.viewers.join(' ')),
    programOf(session),
    textOrNone(session.user),
    tookCell({ started_at: session.opened_at, finished_at: session.closed_at }),
    session.recording,
    { text: formatBytes(session.output_bytes), order: session.output_bytes },
  ]),
  empty,
});

export const sessionDetails = (session: TerminalDetail): FieldsView =>
  fieldsOf([
    ['Session', session.session_id],
    ['Agent', nodeOf(session)],
    ['Status', sessionStatus(session)],
    ['Program', programOf(session)],
    ['User', textOrNone(session.user)],
    ['Opened by', session.operator],
    ['Opened', formatTime(session.opened_at)],
    ['Closed', textOrNone(formatTime(session.closed_at))],
    ...(durationOf(session) === null ? [] : [['Took', textOrNone(durationOf(session))] as const]),
    ['Writes', textOrNone(session.writer)],
    ['Watch', textOrNone(session.viewers.join(' '))],
    ...(session.kind === 'shell' ? [['Size', `${session.cols} x ${session.rows}`] as const] : []),
    ['Output', formatBytes(session.output_bytes)],
    ['Recording', recordingOf(session)],
    ...(session.transcript_sha256 === null ? [] : [['SHA-256', session.transcript_sha256] as const]),
  ]);

/** Names a session by operator, agent and program: `ada on web-01, /bin/bash`. */
export const sessionLabel = (session: TerminalSession): string =>
  `${session.operator} on ${nodeOf(session)}, ${programOf(session)}`;

/** Describes the state of a session: `active`, `exit status 3`, `signal TERM`, `closed: idle`. */
export function sessionStatus(session: TerminalSession): Span {
  const { status, reason, exit_code: code, exit_signal: signal } = session;
  if (status === 'active') return styled('good', status);
  if (status === 'interrupted') return styled('bad', reason === null ? status : `${status}: ${wordsOf(reason)}`);
  if (reason !== null && reason !== 'exited') return styled('warn', `${status}: ${wordsOf(reason)}`);
  if (signal !== null) return styled('warn', `signal ${signal}`);
  return code === null || code === 0 ? styled('dim', status) : styled('warn', `exit status ${code}`);
}

const nodeOf = ({ node_name, node_id }: TerminalSession): string => node_name ?? node_id;

/** Returns the command of a session, unquoted, or its shell. */
const programOf = ({ shell, command }: TerminalSession): string => command?.join(' ') ?? shell ?? 'shell';

const wordsOf = (reason: string): string => (reason === 'closed' ? 'by an operator' : reason.replaceAll('_', ' '));

const durationOf = ({ opened_at, closed_at }: TerminalSession): string | null =>
  closed_at === null ? null : formatDuration(Math.max(0, closed_at - opened_at));

function recordingOf({ recording, transcript_path: path }: TerminalDetail): Span {
  if (recording === 'off') return NONE;
  return path === null ? recording : `${recording}, ${path}`;
}
