/** The commands of `orch term` about sessions; those about recordings are in `term-recordings.ts`. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ApiClient } from '../../client/api-client.js';
import type { Contract } from '../../contract/contract.js';
import type { QueryOf } from '../../contract/route.js';
import {
  TERMINAL_KINDS,
  TERMINAL_LIST_LIMIT,
  TERMINAL_STATUSES,
  type TerminalSession,
} from '../../contract/terminal.js';
import { Fault, isFault } from '../../kernel/fault.js';
import { isUlid } from '../../kernel/ids.js';
import { sentEnvironment } from '../../kernel/schema.js';
import type { TerminalMode } from '../../terminal/notes.js';
import { terminalApi } from '../connect-api.js';
import type { Context } from '../context.js';
import { argument, argumentList, defineCommand } from '../define-command.js';
import { EXIT } from '../exit-status.js';
import { count, timeCells } from '../format.js';
import type { ForwardBesideOptions, ForwardsBeside } from '../forward/forwards-beside.js';
import { allAgents, hasNext } from '../list-pages.js';
import { listSelectorOption, refuseBoth } from '../nodes/choose-agents.js';
import { nodeArgument, resolveNode } from '../nodes/resolve-node.js';
import { choice, flag, integer, list, text } from '../options.js';
import { type Outcome, proseOf } from '../outcome.js';
import { plainText } from '../render/paint.js';
import {
  openableTerm,
  type SessionSettings,
  sessionOptions,
  sessionSettings,
  sizeOf,
} from '../terminal/session-options.js';
import {
  SESSION_COLUMNS,
  sessionDetails,
  sessionLabel,
  sessionStatus,
  sessionTable,
} from '../terminal/session-view.js';
import { watchList, watchOption } from '../watch-list.js';

/** Shortest accepted prefix of a session ID. */
const LEAST_PREFIX = 4;

const SUMMARY = 'session ID, as "orch term list --all" shows it, or a unique prefix of 4 characters or more';

const sessionArgument = argument('ID', SUMMARY, 'terminal');

export const sessionsArgument = argumentList('ID', SUMMARY, 'terminal');

/** `orch term open`. */
export const openTerminal = defineCommand({
  examples: ['orch term web-01', 'orch term web-01 -L 8080:localhost:80', 'orch term open list'],
  detail: [
    '"orch term NODE" is "orch term open NODE"; a node that is named like a subcommand needs the latter.',
    'The shell runs as the user that the agent is set to. The output is recorded, unless the orchestrator is set',
    'otherwise.',
    'At the beginning of a line, ~. detaches (the session continues), ~K ends the session, ~r redraws the screen, ~s',
    'shows the latency, ~w asks for the pen, ~^Z suspends orch, ~? lists these, and ~~ is a tilde. After a lost',
    'connection it resumes by itself. Input typed meanwhile is dropped after 10 s, unless --queue-input is given.',
    'Where the agent is 30 ms or more away, keys are shown before it has echoed them; passwords never are. It ends',
    'with the status of the shell, or 128 and the number of the signal that ended it; with 254 when an operator',
    'closed the session, and with 255 otherwise, as after detaching. Without a terminal on standard input, all of the',
    'input is typed and then Ctrl-D until the shell ends. For commands use orch exec.',
    'The settings of the agent have to permit the targets of -L (forward.targets). Detaching ends these forwards.',
  ],
  access: 'operator',
  failureStatus: EXIT.lost,
  args: { node: nodeArgument },
  options: {
    shell: text('PATH', 'the shell, as in /etc/shells of the machine'),
    cols: integer('N', 'width, in place of that of this terminal', 1),
    rows: integer('N', 'height, in place of that of this terminal', 1),
    forward: list('FORWARD', 'forward [BIND:]PORT:HOST:PORT while the shell is open, as orch forward does', {
      short: 'L',
    }),
    ...sessionOptions,
  },
  run: async (context, { node, shell, cols, rows, forward, ...given }) => {
    const settings = sessionSettings(given);
    return openShell(context, node, { shell, cols, rows, forwards: forward, settings });
  },
});

interface ShellOptions {
  readonly shell?: string | undefined;
  /** Width and height, in place of those of this terminal. */
  readonly cols?: number | undefined;
  readonly rows?: number | undefined;
  /** Forwards for as long as the shell is open here, as the words of `orch forward`. */
  readonly forwards?: readonly string[];
  readonly settings: SessionSettings;
}

/** Starts forwards, for which their code is loaded; returns null without any. */
async function startBeside(context: Context, options: ForwardBesideOptions): Promise<ForwardsBeside | null> {
  if (options.words.length === 0) return null;
  return (await import('../forward/forwards-beside.js')).forwardBeside(context, options);
}

/** Opens a shell on an agent at this terminal, until it ends or the operator detaches. */
export async function openShell(
  context: Context,
  node: string,
  { shell, cols, rows, forwards = [], settings }: ShellOptions,
): Promise<Outcome> {
  const { env, signal, streams } = context;
  const connection = await terminalApi(context);
  const { api } = connection;
  const agent = await resolveNode(api, node, { signal });
  const { node_id } = agent;
  const own = sizeOf([streams.stdout, streams.stderr]);
  const size = { cols: cols ?? own.cols, rows: rows ?? own.rows };
  const query = { ...size, shell: shell ?? null, term: openableTerm(env.TERM) };
  const beside = await startBeside(context, { api, agent, words: forwards });
  try {
    // Loaded while the agent starts the shell: loading before the request would delay it.
    const [opened, { runTerminal }] = await Promise.all([
      api.call('openTerminal', { params: { node_id }, query, body: { env: sentEnvironment(env) }, signal }),
      nextTurn().then(() => import('../terminal/run-terminal.js')),
    ]);
    return await runTerminal(context, {
      connection,
      sessionId: opened.session_id,
      wsUrl: opened.ws_url,
      mode: 'write',
      isNew: true,
      ...(beside && { onNotices: (show) => beside.show(show) }),
      ...(cols === undefined && rows === undefined ? {} : { size }),
      ...settings,
    });
  } finally {
    beside?.close();
  }
}

/** `orch term attach`. */
export const attachTerminal = defineCommand({
  examples: ['orch term attach 01JQ2Z6T0V5X8Y4M3N7P9R1S2T', 'orch term attach 01JQ2Z6T --read-only'],
  detail: [
    'One operator types, any number can watch: while another operator types, you watch, unless you take the pen with',
    '--take. The screen is redrawn. Otherwise it behaves like orch term NODE.',
  ],
  access: 'operator',
  failureStatus: EXIT.lost,
  args: { id: sessionArgument },
  options: {
    readOnly: flag('only watch'),
    take: flag('take the pen from the operator who types'),
    ...sessionOptions,
  },
  run: async (context, { id, readOnly, take, ...given }) => {
    if (readOnly && take) throw new Fault('usage', '--read-only and --take exclude each other');
    const settings = sessionSettings(given);
    const { signal } = context;
    const connection = await terminalApi(context);
    const { api } = connection;
    const sessionId = await findSession(api, id, signal);
    // Loaded after the request is sent, which loading would delay.
    const [attached, { runTerminal }] = await Promise.all([
      attach(context, api, { sessionId, readOnly, take }),
      nextTurn().then(() => import('../terminal/run-terminal.js')),
    ]);
    return runTerminal(context, {
      connection,
      sessionId,
      ...attached,
      isNew: false,
      isReadOnly: readOnly,
      ...settings,
    });
  },
});

/** `orch term list`. */
export const listTerminals = defineCommand({
  examples: ['orch term list', 'orch term list --all --node web-01', 'orch term list --operator ada --watch'],
  detail: ['Shows the writer and the viewers of each session. Ended sessions need --all.'],
  access: 'operator',
  columns: SESSION_COLUMNS,
  options: {
    all: flag('include ended sessions'),
    status: choice('STATUS', TERMINAL_STATUSES, 'filter by status [active]'),
    node: text('NODE', 'only sessions on this agent', { completes: 'node' }),
    selector: listSelectorOption,
    operator: text('OPERATOR', 'only sessions opened by this operator', { completes: 'operator' }),
    kind: choice('KIND', TERMINAL_KINDS, 'only shells, or only commands of "orch exec"'),
    limit: integer('N', `maximum number, newest first [${TERMINAL_LIST_LIMIT.standard}]`, 1),
    watch: watchOption,
  },
  run: async (context, { all, status, node, selector, operator, kind, limit, watch }) => {
    refuseBoth('--node', node, selector);
    if (all && status !== undefined) throw new Fault('usage', '--all and --status do not go together');
    const api = await context.api();
    const agent = node === undefined ? null : await resolveNode(api, node, context);
    const query: Query = {
      status: all ? null : (status ?? 'active'),
      node: agent?.node_id ?? null,
      operator: operator ?? null,
      kind: kind ?? null,
      limit: limit ?? null,
    };
    const empty =
      query.status === 'active' ? 'No sessions are open. Open one with: orch term open NODE' : 'No sessions.';
    const read = async (reading: Context): Promise<Outcome> => {
      const { signal, clock } = reading;
      const selected = selector === undefined ? null : await nodeIdsOf(api, selector, signal);
      const { sessions, hasMore } = await readSessions(api, query, { selected, signal });
      if (hasMore && sessions.length !== limit) reading.note(older(sessions.length));
      return {
        body: sessions,
        records: sessions,
        names: sessions.map(({ session_id }) => session_id),
        view: sessionTable(sessions, timeCells(clock.now(), reading.globals), empty),
      };
    };
    return watch ? watchList(context, api, { read, category: 'terminal' }) : read(context);
  },
});

async function nodeIdsOf(api: ApiClient, selector: string, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const agents = await allAgents(api, { status: 'approved', filter: selector, signal });
  return new Set(agents.map(({ node_id }) => node_id));
}

interface SelectedSessions {
  /** Node IDs of the selected agents; null for all. */
  readonly selected: ReadonlySet<string> | null;
  readonly signal: AbortSignal;
}

/** Reads the sessions. The API does not know selectors, so with one all pages are read until there are enough sessions. */
async function readSessions(api: ApiClient, query: Query, { selected, signal }: SelectedSessions) {
  if (selected === null) {
    const { body: sessions, headers } = await api.callWithHeaders('listTerminals', { query, signal });
    return { sessions, hasMore: hasNext(headers) };
  }
  const wanted = query.limit ?? TERMINAL_LIST_LIMIT.standard;
  const sessions: TerminalSession[] = [];
  for (let offset = 0; ; offset += TERMINAL_LIST_LIMIT.maximum) {
    const page = { ...query, limit: TERMINAL_LIST_LIMIT.maximum, offset };
    const { body, headers } = await api.callWithHeaders('listTerminals', { query: page, signal });
    sessions.push(...body.filter(({ node_id }) => selected.has(node_id)));
    if (sessions.length > wanted) return { sessions: sessions.slice(0, wanted), hasMore: true };
    if (!hasNext(headers)) return { sessions, hasMore: false };
  }
}

/** `orch term show`. */
export const showTerminal = defineCommand({
  examples: ['orch term show 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  access: 'operator',
  args: { id: sessionArgument },
  run: async (context, { id }) => {
    const { signal } = context;
    const api = await context.api();
    const session_id = await findSession(api, id, signal);
    const session = await api.call('getTerminal', { params: { session_id }, signal });
    return { body: session, names: [session.session_id], view: sessionDetails(session) };
  },
});

/** `orch term close`. */
export const closeTerminals = defineCommand({
  examples: ['orch term close 01JQ2Z6T0V5X8Y4M3N7P9R1S2T', 'orch term close 01JQ2Z6T 01JQ2Z8T'],
  detail: [
    'Sends a hangup to the program, and kills it if it does not end. Closes several sessions only if all of them',
    'exist and are active.',
  ],
  access: 'operator',
  consent: true,
  args: { ids: sessionsArgument },
  run: async (context, { ids }) => {
    const { signal } = context;
    const api = await context.api();
    const sessions = new Map<string, TerminalSession>();
    for (const id of ids) {
      const session_id = await findSession(api, id, signal);
      if (!sessions.has(session_id)) {
        sessions.set(session_id, await api.call('getTerminal', { params: { session_id }, signal }));
      }
    }
    for (const session of sessions.values()) {
      if (session.status === 'active') continue;
      throw new Fault('terminal_over', `session ${session.session_id} is over: ${plainText(sessionStatus(session))}`);
    }
    await context.prompt.consent(questionFor([...sessions.values()]));
    const closed: string[] = [];
    let missed = 0;
    for (const session_id of sessions.keys()) {
      try {
        await api.call('closeTerminal', { params: { session_id }, signal });
        closed.push(session_id);
      } catch (error) {
        // One that ended by itself meanwhile keeps none of the others open.
        if (sessions.size === 1 || !isFault(error, 'terminal_over', 'terminal_not_found')) throw error;
        context.warn(error.message);
        missed += 1;
      }
    }
    return {
      names: closed,
      view: proseOf(closed.map((id) => `Closed ${id}.`)),
      exitStatus: missed > 0 ? EXIT.partlyFailed : EXIT.done,
    };
  },
});

const BEGINNING = /^[0-9A-HJKMNP-TV-Z]{1,26}$/;

/** Maximum number of listed sessions that share a prefix. */
const NAMED = 10;

/**
 * Returns the whole ID of a session. Does not look up a whole ID.
 * @throws Fault `terminal_not_found`, or `usage` for a prefix that is too short or ambiguous
 */
export async function findSession(api: ApiClient, given: string, signal: AbortSignal): Promise<string> {
  const text = given.trim().toUpperCase();
  if (isUlid(text)) return text;
  if (text.length < LEAST_PREFIX) {
    throw new Fault('usage', `"${given}" is too short: give at least ${LEAST_PREFIX} characters of the session ID`);
  }
  const query = { prefix: text, limit: NAMED + 1 };
  const found = BEGINNING.test(text) ? await api.call('listTerminals', { query, signal }) : [];
  const [first, ...others] = found;
  if (first === undefined) {
    throw new Fault('terminal_not_found', `there is no session "${given}"`, {
      hint: 'list the sessions with: orch term list --all',
    });
  }
  if (others.length === 0) return first.session_id;
  const named = found.slice(0, NAMED);
  const count = found.length > NAMED ? `more than ${NAMED} sessions; the newest` : `${found.length} sessions`;
  const list = named.map((session) => `  ${session.session_id}  ${sessionLabel(session)}  ${session.status}`);
  throw new Fault('usage', `"${given}" begins the IDs of ${count}:\n${list.join('\n')}`, {
    hint: 'give more characters',
  });
}

interface AttachOptions {
  readonly sessionId: string;
  readonly readOnly: boolean;
  readonly take: boolean;
}

interface Attached {
  readonly wsUrl: string;
  readonly mode: TerminalMode;
}

async function attach({ signal, note }: Context, api: ApiClient, options: AttachOptions): Promise<Attached> {
  const as = async (mode: TerminalMode, take: boolean): Promise<Attached> => {
    const params = { session_id: options.sessionId };
    const { ws_url } = await api.call('attachTerminal', { params, body: { mode, take }, signal });
    return { wsUrl: ws_url, mode };
  };
  if (options.readOnly) return as('read', false);
  try {
    return await as('write', options.take);
  } catch (error) {
    if (!isFault(error, 'terminal_pen_taken')) throw error;
    note(`${error.message}: you only watch. To type yourself: orch term attach ${options.sessionId} --take`);
    return as('read', false);
  }
}

/** `orch term list`. */
type Query = QueryOf<Contract['listTerminals']>;

/** Returns the note about older sessions. The API caps a page, whatever the limit. */
const older = (shown: number): string =>
  shown < TERMINAL_LIST_LIMIT.maximum
    ? 'More records exist: --limit N shows them.'
    : `More sessions exist, and at most ${shown} are shown. Narrow the list down with --node, --operator or --kind.`;

function questionFor(sessions: readonly TerminalSession[]): string {
  const [only] = sessions;
  if (only !== undefined && sessions.length === 1) {
    return `Close the session of ${sessionLabel(only)}, and end its program?`;
  }
  const listed = sessions.map((session) => `  - ${session.session_id}  ${sessionLabel(session)}`);
  return `${listed.join('\n')}\nClose these ${count(sessions.length, 'session')}, and end their programs?`;
}
