/** `orch term list`. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../../../client/api-client.js';
import type { Contract } from '../../../contract/contract.js';
import type { QueryOf } from '../../../contract/route.js';
import {
  TERMINAL_KINDS,
  TERMINAL_LIST_LIMIT,
  TERMINAL_STATUSES,
  type TerminalSession,
} from '../../../contract/terminal.js';
import { Fault } from '../../../kernel/fault.js';
import type { Context } from '../../context.js';
import { defineCommand } from '../../define-command.js';
import { hasNext } from '../../list-pages.js';
import { resolveNode } from '../../nodes/resolve-node.js';
import { choice, flag, integer, text } from '../../option.js';
import type { Outcome } from '../../outcome.js';
import { lines } from '../../view.js';
import { changeLine, sessionChanges } from './list-changes.js';
import { sessionTable } from './session-view.js';

type Query = QueryOf<Contract['listTerminals']>;

/** How often `--watch` asks, in milliseconds. */
const WATCH_EVERY = 2_000;

export const command = defineCommand({
  examples: ['orch term list', 'orch term list --all --node web-01', 'orch term list --operator ada --watch'],
  detail: [
    'The sessions that are open now, who writes in them and who watches; with --all those that are over too.',
    'With --watch each one that is opened, changes hands or ends is told as it happens, until Ctrl-C; with -o json as one',
    'line each.',
  ],
  access: 'operator',
  options: {
    all: flag('those that are over too'),
    status: choice('STATUS', TERMINAL_STATUSES, 'only those; active when left out'),
    node: text('NODE', 'only on this agent', { completes: 'node' }),
    operator: text('OPERATOR', 'only those that this operator has opened', { completes: 'operator' }),
    kind: choice('KIND', TERMINAL_KINDS, 'only shells, or only commands of "orch exec"'),
    limit: integer('N', `at most that many, newest first; ${TERMINAL_LIST_LIMIT.standard} when left out`, 1),
    watch: flag('go on with what changes, until Ctrl-C'),
  },
  run: async (context, { all, status, node, operator, kind, limit, watch }) => {
    if (all && status !== undefined) throw new Fault('usage', '--all and --status do not go together');
    if (watch && status !== undefined && status !== 'active') {
      throw new Fault('usage', `--watch has nothing to follow in sessions that are ${status}`);
    }
    const { signal, clock } = context;
    const api = await context.api();
    const agent = node === undefined ? null : await resolveNode(api, node, { signal });
    const query: Query = {
      status: all ? null : (status ?? 'active'),
      node: agent?.node_id ?? null,
      operator: operator ?? null,
      kind: kind ?? null,
      limit: limit ?? null,
    };
    const { body: sessions, headers } = await api.callFull('listTerminals', { query, signal });
    const empty =
      query.status === 'active' ? 'No sessions are open. Open one with: orch term open NODE' : 'No sessions.';
    const listed: Outcome = {
      body: sessions,
      names: sessions.map(({ session_id }) => session_id),
      view: sessionTable(sessions, clock.now(), empty),
    };
    if (watch) return follow(context, api, { query, sessions, listed });
    if (hasNext(headers) && sessions.length !== limit) context.note(older(sessions.length));
    return listed;
  },
});

/** The API gives at most so many at once, whatever the limit. */
const older = (shown: number): string =>
  shown < TERMINAL_LIST_LIMIT.maximum
    ? 'There are older ones: --limit N shows more.'
    : `There are older ones: ${shown} are shown at most. Narrow it down with --node, --operator or --kind.`;

interface Following {
  readonly query: Query;
  readonly sessions: readonly TerminalSession[];
  readonly listed: Outcome;
}

/** First the list, then each change. */
async function* follow(
  context: Context,
  api: ApiClient,
  { query, sessions, listed }: Following,
): AsyncIterable<Outcome> {
  const { signal, clock } = context;
  const forPrograms = context.globals.output === 'json' || context.globals.output === 'yaml';
  if (!forPrograms) yield listed;
  else for (const session of sessions) yield { body: session, oneLine: true };
  const known = new Map(sessions.map((session) => [session.session_id, session]));
  const since = Math.floor(clock.now() / 1000);
  for (;;) {
    await sleep(WATCH_EVERY, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const now = await api.call('listTerminals', { query: { ...query, status: null }, signal });
    // What was over before anybody watched is no news, whether the list showed it or not.
    const news = now.filter(({ session_id, closed_at }) => known.has(session_id) || (closed_at ?? since) >= since);
    for (const change of sessionChanges(known, news)) {
      const { session } = change;
      yield {
        body: session,
        oneLine: true,
        names: [session.session_id],
        view: lines(changeLine(change, clock.now())),
      };
    }
    for (const session of now) known.set(session.session_id, session);
  }
}
