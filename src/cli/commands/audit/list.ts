/** `orch audit list`. */
import type { ApiClient } from '../../../client/api-client.js';
import type { AuditEvent } from '../../../contract/audit.js';
import type { Contract } from '../../../contract/contract.js';
import type { QueryOf } from '../../../contract/route.js';
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { flag, integer, text } from '../../option.js';
import type { Outcome } from '../../outcome.js';
import { type Span, styled, type TableView } from '../../view.js';
import { parseWhen } from '../../when.js';

type Query = QueryOf<Contract['listAuditEvents']>;

/** What one request may ask for at most. */
const PAGE = 500;

export const command = defineCommand({
  examples: ['orch audit', 'orch audit --category agent --after "2h ago"', 'orch audit --operator ada --all -o json'],
  access: 'viewer',
  options: {
    agent: text('NODE', 'only about this agent: node ID or name', { completes: 'node' }),
    operator: text('OPERATOR', 'only by this operator: operator ID or username', { completes: 'operator' }),
    type: text('EVENT', 'only this type, such as agent.approved'),
    category: text('PREFIX', 'only types that begin with this, such as agent'),
    after: text('TIME', 'only from then on: RFC 3339, a date, or "2h ago"'),
    before: text('TIME', 'only before then'),
    limit: integer('N', 'at most that many, newest first; 50 when left out, 500 at most', 1),
    all: flag('every event, page after page'),
  },
  run: async (context, input) => {
    if (input.all && input.limit !== undefined) throw new Fault('usage', '--limit and --all do not go together');
    const now = context.clock.now();
    const when = (value: string | undefined, name: string) =>
      value === undefined ? null : parseWhen(value, name, now);
    const query: Query = {
      agent: input.agent ?? null,
      operator: input.operator ?? null,
      event_type: input.type ?? null,
      category: input.category ?? null,
      after: when(input.after, '--after'),
      before: when(input.before, '--before'),
      limit: input.limit ?? (input.all ? PAGE : null),
    };
    const api = await context.api();
    const pages = auditPages(api, query, context.signal);
    if (input.all) return pages;
    const first = await pages.next();
    if (first.done) return {};
    if (input.limit === undefined && isMore(first.value)) {
      context.note('There are older ones: --limit N or --all shows them.');
    }
    return first.value;
  },
});

const isMore = ({ body }: Outcome): boolean =>
  typeof body === 'object' && body !== null && 'has_more' in body && body.has_more === true;

async function* auditPages(api: ApiClient, query: Query, signal: AbortSignal): AsyncGenerator<Outcome, void> {
  let cursor: string | null = null;
  let titles = true;
  do {
    const body: {
      readonly events: readonly AuditEvent[];
      readonly has_more: boolean;
      readonly next_cursor: string | null;
    } = await api.call('listAuditEvents', { query: { ...query, cursor }, signal });
    yield { body, names: body.events.map(({ id }) => id), view: auditTable(body.events, titles) };
    cursor = body.has_more ? body.next_cursor : null;
    titles = false;
  } while (cursor !== null);
}

const auditTable = (events: readonly AuditEvent[], titles: boolean): TableView => ({
  kind: 'table',
  titles,
  columns: [
    { title: 'TIME', whole: true },
    { title: 'EVENT', whole: true },
    { title: 'BY' },
    { title: 'SUMMARY' },
    { title: 'SEVERITY', wide: true },
    { title: 'ABOUT', wide: true },
    { title: 'ID', wide: true },
  ],
  rows: events.map((event) => [
    event.timestamp.replace(/\.\d+Z$/, 'Z'),
    eventType(event),
    event.actor.name || event.actor.type,
    event.summary,
    event.severity,
    `${event.target.type} ${event.target.name || event.target.id}`,
    event.id,
  ]),
  empty: 'No events.',
});

function eventType({ event_type, severity }: AuditEvent): Span {
  if (severity === 'critical') return styled('bad', event_type);
  return severity === 'warning' ? styled('warn', event_type) : event_type;
}
