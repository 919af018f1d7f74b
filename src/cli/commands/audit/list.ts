/** `orch audit list`. */
import type { ApiClient } from '../../../client/api-client.js';
import type { AuditEvent } from '../../../contract/audit.js';
import type { Contract } from '../../../contract/contract.js';
import type { QueryOf } from '../../../contract/route.js';
import { Fault } from '../../../kernel/fault.js';
import { defineCommand } from '../../define-command.js';
import { flag, integer, text } from '../../option.js';
import type { Outcome } from '../../outcome.js';
import { parseWhen } from '../../when.js';
import { auditOptions, auditQuery } from './audit-options.js';
import { auditTable } from './audit-view.js';

type Query = QueryOf<Contract['listAuditEvents']>;

/** What one request may ask for at most. */
const PAGE = 500;

export const command = defineCommand({
  examples: ['orch audit', 'orch audit --category agent --after "2h ago"', 'orch audit --operator ada --all -o json'],
  access: 'viewer',
  options: {
    ...auditOptions,
    before: text('TIME', 'only before then'),
    limit: integer('N', 'at most that many, newest first; 50 when left out, 500 at most', 1),
    cursor: text('ID', 'go on behind this event: next_cursor of the page before'),
    all: flag('every event, page after page'),
  },
  run: async (context, input) => {
    if (input.all && input.limit !== undefined) throw new Fault('usage', '--limit and --all do not go together');
    const now = context.clock.now();
    const query: Query = {
      ...auditQuery(input, now),
      before: input.before === undefined ? null : parseWhen(input.before, '--before', now),
      limit: input.limit ?? (input.all ? PAGE : null),
    };
    const api = await context.api();
    const pages = auditPages(api, { ...query, cursor: input.cursor ?? null }, context.signal);
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
  let cursor = query.cursor ?? null;
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
