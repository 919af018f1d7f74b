/** Handlers of remote terminals, commands and their recordings. */
import type { Readable } from 'node:stream';
import { API_BASE } from '../../src/contract/contract.js';
import type { Operator } from '../../src/contract/operators.js';
import type { Right } from '../../src/contract/rights.js';
import type { AnswerOf } from '../../src/contract/route.js';
import { clampLimit } from '../../src/contract/shapes.js';
import { TERMINAL_LIST_LIMIT, TERMINAL_SEARCH_LIMIT, type terminalRoutes } from '../../src/contract/terminal.js';
import { Fault } from '../../src/kernel/fault.js';
import type { RequestContext } from '../core/domain-event.js';
import { notForRobots, notGranted, type Rights } from '../core/rights.js';
import { keepsReadable, type Machines } from '../fleet/machines.js';
import type { HandlersFor } from '../http/handler.js';
import { linkTo } from '../http/query-string.js';
import { rightTo } from './eligibility.js';
import { sessionNotFound } from './list-sessions.js';
import type { Opened } from './open-session.js';
import type { TranscriptSearchQuery } from './recordings/transcripts.js';
import type { Terminals } from './terminals.js';

/** Recordings as they are read. */
interface TranscriptAccess {
  /** The recording so far. Throws `terminal_not_found`, `transcript_not_found`. */
  open(sessionId: string, context: RequestContext): Promise<Readable>;
  /** Throws `invalid_query` for what is no regular expression. */
  search(
    query: TranscriptSearchQuery,
    context: RequestContext,
  ): Promise<AnswerOf<(typeof terminalRoutes)['searchTerminals']>['body']>;
}

interface TerminalServices {
  readonly machines: Machines;
  readonly terminals: Terminals;
  readonly transcripts: TranscriptAccess;
}

const STANDARD_SIZE = { cols: 80, rows: 24 } as const;
const STANDARD_TERM = 'xterm-256color';

interface Caller {
  readonly operator: Operator;
  readonly rights: Rights;
}

/**
 * Throws `terminal_not_found` for a session that the grants hide, and `not_granted` or `role_forbidden` without `right` on its
 * machine. For a session of one's own the right with which it was opened is enough.
 */
async function requireOn(
  { machines, terminals }: TerminalServices,
  sessionId: string,
  { operator, rights }: Caller,
  right: Right,
): Promise<void> {
  const { kind, node_id, operator_id } = await terminals.place(sessionId);
  const isOwn = operator_id === operator.operator_id;
  const enough = [right, ...(isOwn ? [rightTo({ kind, operatorId: operator_id }, operator_id, 'write')] : [])];
  if (!rights.isLimited) {
    // Without grants only a robot can lack one of these rights.
    if (!enough.some((one) => rights.has(one))) throw notForRobots(operator.username, right);
    return;
  }
  if (!(await machines.mayRead(rights, node_id, sessionId))) throw sessionNotFound(sessionId);
  const machine = await machines.readable(rights, node_id);
  if (machine === null || !enough.some((one) => rights.may(one, machine))) {
    throw notGranted(right, 'the machine of this session');
  }
}

export const terminalHandlers = (services: TerminalServices): HandlersFor<typeof terminalRoutes> => ({
  ...sessionHandlers(services),
  ...startHandlers(services),
});

type SessionRoutes = Omit<typeof terminalRoutes, 'openTerminal' | 'execOnAgent'>;

const sessionHandlers = (services: TerminalServices): HandlersFor<SessionRoutes> => ({
  listTerminals: async ({ query, rights }) => {
    const { machines, terminals } = services;
    const limit = clampLimit(query.limit, TERMINAL_LIST_LIMIT.standard, TERMINAL_LIST_LIMIT.maximum);
    const offset = query.offset ?? 0;
    // One more than asked for tells whether there is a next page.
    const readable = await machines.history(rights, 'watch');
    const page = await terminals.list({ ...query, readable, limit: limit + 1, offset });
    const next = { ...query, limit, offset: offset + limit };
    return { status: 200, body: page.slice(0, limit), headers: page.length > limit ? linkTo('/terminal', next) : {} };
  },
  getTerminal: async ({ params, ...caller }) => {
    await requireOn(services, params.session_id, caller, 'watch');
    return { status: 200, body: await services.terminals.get(params.session_id) };
  },
  closeTerminal: async ({ params, context, ...caller }) => {
    await requireOn(services, params.session_id, caller, 'terminal');
    await services.terminals.close(params.session_id, context);
    return { status: 204, body: undefined };
  },
  attachTerminal: async ({ params, body, operator, context, rights, baseUrl }) => {
    const { terminals } = services;
    await requireOn(services, params.session_id, { operator, rights }, 'watch');
    if (body.mode === 'write') await requireOn(services, params.session_id, { operator, rights }, 'take-pen');
    const take = body.take === true;
    const ticket = await terminals.attach(params.session_id, { mode: body.mode, take, operator }, context);
    return { status: 200, body: { ws_url: streamUrl(baseUrl, params.session_id, ticket) } };
  },
  getTranscript: async ({ params, context, ...caller }) => {
    await requireOn(services, params.session_id, caller, 'watch');
    return {
      status: 200,
      body: await services.transcripts.open(params.session_id, context),
      headers: { 'content-disposition': `attachment; filename="${params.session_id}.cast"` },
    };
  },
  searchTerminals: async ({ query, context, rights, signal }) => {
    const limit = clampLimit(query.limit, TERMINAL_SEARCH_LIMIT.standard, TERMINAL_SEARCH_LIMIT.maximum);
    const readable = async () => keepsReadable(await services.machines.history(rights, 'watch'));
    return { status: 200, body: await services.transcripts.search({ ...query, limit, signal, readable }, context) };
  },
});

const startHandlers = ({
  terminals,
}: TerminalServices): HandlersFor<Omit<typeof terminalRoutes, keyof SessionRoutes>> => ({
  openTerminal: async ({ params, query, body, operator, context, baseUrl }) => {
    const opened = await terminals.openShell(
      {
        nodeId: params.node_id,
        operator,
        cols: query.cols || STANDARD_SIZE.cols,
        rows: query.rows || STANDARD_SIZE.rows,
        term: query.term ?? '',
        shell: query.shell ?? null,
        env: body.env ?? [],
      },
      context,
    );
    return { status: 200, body: openedView(opened, baseUrl) };
  },
  execOnAgent: async ({ params, body, operator, context, baseUrl }) => {
    const tty = body.tty ?? null;
    if (tty !== null && operator.robot === true) throw notForRobots(operator.username, 'terminal');
    if (tty !== null && typeof body.timeout_secs === 'number') {
      throw new Fault('invalid_body', 'timeout_secs is for commands without a terminal, and tty asks for one');
    }
    if (tty !== null && body.wait === true) {
      throw new Fault('invalid_body', 'wait is for commands without a terminal, and tty asks for one');
    }
    const opened = await terminals.exec(
      {
        nodeId: params.node_id,
        operator,
        command: body.command,
        timeoutSecs: body.timeout_secs ?? null,
        stdin: body.stdin === true,
        wait: body.wait ?? null,
        tty: tty && {
          cols: tty.cols || STANDARD_SIZE.cols,
          rows: tty.rows || STANDARD_SIZE.rows,
          term: tty.term || STANDARD_TERM,
        },
        env: body.env ?? [],
      },
      context,
    );
    return { status: 200, body: openedView(opened, baseUrl) };
  },
});

const openedView = ({ sessionId, ticket }: Opened, baseUrl: string) => ({
  session_id: sessionId,
  ws_url: streamUrl(baseUrl, sessionId, ticket),
});

/** Where a client reaches a session's stream: under the name by which it has reached the API. */
const streamUrl = (baseUrl: string, sessionId: string, ticket: string): string =>
  `${baseUrl.replace(/^http/, 'ws')}${API_BASE}/terminal/session/${sessionId}/stream?ticket=${ticket}`;
