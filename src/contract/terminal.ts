/** Remote terminals, commands on agents, and their recordings. */
import * as Type from 'typebox';
import { closed, EnvironmentSchema, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import {
  AgentName,
  limitOf,
  NEXT_PAGE,
  NodeId,
  NodeParams,
  Offset,
  OperatorFilter,
  OperatorId,
  pathId,
  Seconds,
  Ulid,
  ulidOf,
} from './shapes.js';

export const TERMINAL_STATUSES = ['active', 'closed', 'interrupted'] as const;
export const TERMINAL_KINDS = ['shell', 'exec'] as const;
const RECORDING_STATES = ['off', 'on', 'complete', 'truncated', 'failed', 'pruned'] as const;
export const TERMINAL_LIST_LIMIT = { standard: 200, maximum: 2_000 } as const;
export const TERMINAL_SEARCH_LIMIT = { standard: 200, maximum: 2_000 } as const;
/** Maximum time of a command in seconds. */
export const EXEC_TIMEOUT_MAX = 86_400;

/** Maximum words of a command: more than Linux takes with words of the usual length. */
export const COMMAND_WORDS_MAX = 65_536;

/** Width or height of a terminal. */
const Cells = Type.Integer({ minimum: 1, maximum: 1_000 });
/** Width or height that a client reports. */
const MaybeCells = Type.Integer({ minimum: 0, maximum: 1_000, description: '0 when unknown' });

const Term = Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9+._-]{0,63}$', description: "the client's TERM" });

const TerminalSessionSchema = closed({
  session_id: ulidOf('ID of the session'),
  node_id: NodeId,
  status: Type.Enum(TERMINAL_STATUSES, {
    description: 'closed: it has ended; interrupted: it ended with its agent, its machine or the connection',
  }),
  opened_at: Seconds,
  closed_at: nullable(Seconds),
  node_name: AgentName,
  kind: Type.Enum(TERMINAL_KINDS, { description: 'shell: an interactive terminal; exec: a command' }),
  operator_id: OperatorId,
  operator: Type.String({ description: 'Username of the operator who opened it' }),
  user: nullable(
    Type.String({ description: 'User of the machine that the program runs as; null until the agent reports it' }),
  ),
  shell: nullable(Type.String({ description: 'Path of the shell; null for a command' })),
  command: nullable(Type.Array(Type.String(), { description: 'Program and arguments; null for a shell' })),
  reason: nullable(Type.String({ description: 'Reason of the end; null while the session is active' })),
  exit_code: nullable(Type.Integer({ description: 'Exit status of the program; null without one' })),
  exit_signal: nullable(Type.String({ description: 'Signal that ended the program; null without one' })),
  recording: Type.Enum(RECORDING_STATES, {
    description: 'State of the recording: `on` while it is written, `complete` when it was written to the end',
  }),
  output_bytes: Type.Integer({ description: 'Bytes of output so far' }),
  writer: nullable(
    Type.String({ description: 'Username of the operator with the pen; null without an attached writer' }),
  ),
  viewers: Type.Array(Type.String(), { description: 'Usernames of the operators who watch' }),
});
export type TerminalSession = Type.Static<typeof TerminalSessionSchema>;

const TerminalDetailSchema = closed({
  ...TerminalSessionSchema.properties,
  transcript_path: nullable(
    Type.String({ description: 'Path of the recording, relative to the data directory; null without one' }),
  ),
  transcript_sha256: nullable(
    Type.String({
      description:
        'SHA-256 of the recording in the audit log; null while the session is active, and without a recording',
    }),
  ),
  cols: { ...Cells, description: 'Width in columns' },
  rows: { ...Cells, description: 'Height in rows' },
});
export type TerminalDetail = Type.Static<typeof TerminalDetailSchema>;

const WsUrl = Type.String({ description: 'WebSocket address with a ticket that is valid once, for 30 s' });

export const OpenedTerminalSchema = closed({
  session_id: ulidOf('ID of the session'),
  ws_url: WsUrl,
});

/** A place in a recording. */
export const TerminalMatchSchema = closed({
  session_id: ulidOf('ID of the session'),
  node_id: NodeId,
  node_name: AgentName,
  operator: Type.String({ description: 'Username of the operator who opened it' }),
  opened_at: Seconds,
  at: Type.Number({ description: 'Seconds from the start of the session' }),
  line: Type.String({ description: 'Line of output without control sequences' }),
});
export type TerminalMatch = Type.Static<typeof TerminalMatchSchema>;

const sessionParams = closed({ session_id: pathId('ID of the session') });

/** `POST /terminal/{node_id}` answers 404 for an agent without a connection, as for an unknown node. */
const OPEN_STATUSES = { agent_not_connected: 404 } as const;

const OPEN_FAULTS = [
  'tls_required',
  'agent_not_found',
  'agent_not_approved',
  'agent_not_connected',
  'terminal_disabled',
  'terminal_unsupported',
  'terminal_limit',
  'recording_failed',
  'agent_timeout',
] as const;

export const terminalRoutes = {
  listTerminals: route({
    id: 'listTerminals',
    summary: 'Terminal sessions and commands, newest first; a Link header names the next page',
    tag: 'terminal',
    method: 'GET',
    path: '/terminal',
    access: 'watch',
    grants: 'filtered',
    query: closed({
      status: optional(Type.Enum(TERMINAL_STATUSES, { description: 'Only sessions with this status' })),
      node: optional(Type.String({ description: 'node_id' })),
      operator: OperatorFilter,
      kind: optional(Type.Enum(TERMINAL_KINDS, { description: 'Only shells, or only commands' })),
      prefix: optional(
        Type.String({ pattern: '^[0-9A-HJKMNP-TV-Z]{1,26}$', description: 'beginning of the session_id' }),
      ),
      limit: optional(limitOf(TERMINAL_LIST_LIMIT.standard, TERMINAL_LIST_LIMIT.maximum)),
      offset: Offset,
    }),
    answers: { 200: Type.Array(TerminalSessionSchema) },
    headers: NEXT_PAGE,
    faults: ['invalid_filter'],
  }),
  getTerminal: route({
    id: 'getTerminal',
    summary: 'One session',
    tag: 'terminal',
    method: 'GET',
    path: '/terminal/session/{session_id}',
    access: 'watch',
    own: ['terminal', 'exec'],
    grants: 'filtered',
    params: sessionParams,
    answers: { 200: TerminalDetailSchema },
    faults: ['terminal_not_found'],
  }),
  closeTerminal: route({
    id: 'closeTerminal',
    summary: 'End a session: its program gets SIGHUP, and is killed if it does not end',
    tag: 'terminal',
    method: 'DELETE',
    path: '/terminal/session/{session_id}',
    access: 'terminal',
    own: ['terminal', 'exec'],
    grants: 'filtered',
    params: sessionParams,
    answers: { 204: null },
    // An ended session cannot be closed, so it is not found.
    statuses: { terminal_over: 404 },
    faults: ['terminal_not_found', 'terminal_over'],
  }),
  attachTerminal: route({
    id: 'attachTerminal',
    summary: 'A ticket for an open session',
    tag: 'terminal',
    method: 'POST',
    path: '/terminal/session/{session_id}/attach',
    access: 'watch',
    own: ['terminal', 'exec'],
    grants: 'filtered',
    tls: true,
    secretAnswer: true,
    params: sessionParams,
    body: closed({
      mode: Type.Enum(['read', 'write'], { description: 'read: watch; write: type too' }),
      take: optional(Type.Boolean({ description: 'true takes the pen from another writer' })),
    }),
    answers: { 200: closed({ ws_url: WsUrl }) },
    faults: ['tls_required', 'terminal_not_found', 'terminal_over', 'terminal_pen_taken'],
  }),
  getTranscript: route({
    id: 'getTranscript',
    summary: 'The recording of a session so far (asciicast v2)',
    tag: 'terminal',
    method: 'GET',
    path: '/terminal/session/{session_id}/transcript',
    access: 'watch',
    grants: 'filtered',
    params: sessionParams,
    mediaType: 'application/x-asciicast',
    answers: { 200: Type.String() },
    faults: ['terminal_not_found', 'transcript_not_found', 'transcript_invalid'],
  }),
  searchTerminals: route({
    id: 'searchTerminals',
    summary: 'Lines of recordings that match a regular expression, newest sessions first',
    tag: 'terminal',
    method: 'GET',
    path: '/terminal/search',
    access: 'watch',
    grants: 'filtered',
    query: closed({
      pattern: Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'Regular expression, as in JavaScript with the flag `u`',
      }),
      ignore_case: optional(Type.Boolean({ description: 'true: capitals and small letters are alike' })),
      since: optional(Seconds),
      node: optional(Type.String({ description: 'node_id' })),
      operator: OperatorFilter,
      limit: optional(limitOf(TERMINAL_SEARCH_LIMIT.standard, TERMINAL_SEARCH_LIMIT.maximum)),
    }),
    answers: {
      200: closed({
        matches: Type.Array(TerminalMatchSchema, { description: 'Matching lines, newest sessions first' }),
        searched: Type.Integer({ description: 'Number of searched recordings' }),
        truncated: Type.Boolean({ description: 'True when there are more matches, or the search ran out of time' }),
        altered: Type.Array(Ulid, {
          description: 'Sessions whose recording differs from the audit log or cannot be read to its end',
        }),
      }),
    },
    faults: ['invalid_query', 'invalid_filter'],
  }),
  openTerminal: route({
    id: 'openTerminal',
    summary: 'Open a shell on an agent',
    tag: 'terminal',
    method: 'POST',
    path: '/terminal/{node_id}',
    access: 'terminal',
    tls: true,
    secretAnswer: true,
    params: NodeParams,
    query: closed({
      cols: optional(MaybeCells),
      rows: optional(MaybeCells),
      shell: optional(
        Type.String({ minLength: 1, maxLength: 4_096, description: 'Path of the shell; default: that of the user' }),
      ),
      term: optional(Term),
    }),
    body: closed({ env: optional(EnvironmentSchema) }),
    bodyOptional: true,
    answers: { 200: OpenedTerminalSchema },
    statuses: OPEN_STATUSES,
    faults: [...OPEN_FAULTS, 'shell_not_allowed'],
  }),
  execOnAgent: route({
    id: 'execOnAgent',
    summary: 'Run a command on an agent, without a terminal or on one',
    tag: 'terminal',
    method: 'POST',
    path: '/agents/{node_id}/exec',
    access: 'exec',
    tls: true,
    secretAnswer: true,
    params: NodeParams,
    bodyMembers: COMMAND_WORDS_MAX + 1_000,
    body: closed({
      command: Type.Array(Type.String({ maxLength: 131_072 }), {
        minItems: 1,
        maxItems: COMMAND_WORDS_MAX,
        description: 'Program and arguments, without a shell',
      }),
      timeout_secs: optional(
        Type.Integer({
          minimum: 1,
          maximum: EXEC_TIMEOUT_MAX,
          description: 'Seconds after which the command is ended',
        }),
      ),
      stdin: optional(
        Type.Boolean({
          description: 'true when the client sends its standard input; otherwise the command reads nothing',
        }),
      ),
      wait: optional(
        Type.Boolean({
          description:
            'true waits until no process has the output open, as ssh does; otherwise the output ends about a second after the command',
        }),
      ),
      env: optional(EnvironmentSchema),
      tty: optional(
        closed(
          { cols: optional(MaybeCells), rows: optional(MaybeCells), term: optional(Term) },
          {
            description:
              "Runs it on a terminal like a shell: its input is the client's, and `timeout_secs` and `wait` are refused",
          },
        ),
      ),
    }),
    answers: { 200: OpenedTerminalSchema },
    statuses: OPEN_STATUSES,
    faults: [...OPEN_FAULTS, 'command_missing', 'command_not_executable'],
  }),
} as const;
