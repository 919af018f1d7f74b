/** How terminal sessions are shown. */
import type { TerminalDetail, TerminalSession } from '../../../contract/terminal.js';
import { formatAge, formatBytes, formatDuration, formatTime, NONE, orNone } from '../../format.js';
import { type FieldsView, fieldsOf, type Span, styled, type TableView } from '../../view.js';

export const sessionTable = (sessions: readonly TerminalSession[], now: number, empty: string): TableView => ({
  kind: 'table',
  columns: [
    { title: 'SESSION ID', whole: true },
    { title: 'AGENT' },
    { title: 'OPERATOR' },
    { title: 'STATUS' },
    { title: 'OPENED', whole: true },
    { title: 'WRITES' },
    { title: 'WATCH' },
    { title: 'PROGRAM' },
    { title: 'USER', wide: true },
    { title: 'TOOK', wide: true },
    { title: 'RECORDING', wide: true },
    { title: 'OUTPUT', wide: true, right: true },
  ],
  rows: sessions.map((session) => [
    session.session_id,
    nodeOf(session),
    session.operator,
    sessionStatus(session),
    formatAge(session.opened_at, now),
    orNone(session.writer),
    orNone(session.viewers.join(' ')),
    programOf(session),
    orNone(session.user),
    orNone(durationOf(session)),
    session.recording,
    formatBytes(session.output_bytes),
  ]),
  empty,
});

export const sessionDetails = (session: TerminalDetail): FieldsView =>
  fieldsOf([
    ['Session', session.session_id],
    ['Agent', nodeOf(session)],
    ['Status', sessionStatus(session)],
    ['Program', programOf(session)],
    ['User', orNone(session.user)],
    ['Opened by', session.operator],
    ['Opened', formatTime(session.opened_at)],
    ['Closed', orNone(formatTime(session.closed_at))],
    ...(durationOf(session) === null ? [] : [['Took', orNone(durationOf(session))] as const]),
    ['Writes', orNone(session.writer)],
    ['Watch', orNone(session.viewers.join(' '))],
    ...(session.kind === 'shell' ? [['Size', `${session.cols} x ${session.rows}`] as const] : []),
    ['Output', formatBytes(session.output_bytes)],
    ['Recording', recordingOf(session)],
    ...(session.transcript_sha256 === null ? [] : [['SHA-256', session.transcript_sha256] as const]),
  ]);

/** Whose and where: `ada on web-01, /bin/bash`. */
export const sessionLabel = (session: TerminalSession): string =>
  `${session.operator} on ${nodeOf(session)}, ${programOf(session)}`;

/** What has come of it: `active`, `exit status 3`, `ended by signal TERM`, `closed: idle`. */
export function sessionStatus(session: TerminalSession): Span {
  const { status, reason, exit_code: code, exit_signal: signal } = session;
  if (status === 'active') return styled('good', status);
  if (status === 'interrupted') return styled('bad', reason === null ? status : `${status}: ${wordsOf(reason)}`);
  if (reason !== null && reason !== 'exited') return styled('warn', `${status}: ${wordsOf(reason)}`);
  if (signal !== null) return styled('warn', `signal ${signal}`);
  return code === null || code === 0 ? styled('dim', status) : styled('warn', `exit status ${code}`);
}

const nodeOf = ({ node_name, node_id }: TerminalSession): string => node_name ?? node_id;

/** The shell, or the command as it was given, not as a shell would read it. */
const programOf = ({ shell, command }: TerminalSession): string => command?.join(' ') ?? shell ?? 'shell';

const wordsOf = (reason: string): string => (reason === 'closed' ? 'by an operator' : reason.replaceAll('_', ' '));

const durationOf = ({ opened_at, closed_at }: TerminalSession): string | null =>
  closed_at === null ? null : formatDuration(Math.max(0, closed_at - opened_at));

function recordingOf({ recording, transcript_path: path }: TerminalDetail): Span {
  if (recording === 'off') return NONE;
  return path === null ? recording : `${recording}, ${path}`;
}
