/** The audit log. */
import type { Kysely } from 'kysely';
import { AUDIT_LIST_LIMIT, type auditRoutes } from '../../src/contract/audit.js';
import type { QueryOf } from '../../src/contract/route.js';
import { clampLimit } from '../../src/contract/shapes.js';
import { Fault } from '../../src/kernel/fault.js';
import { isUlid } from '../../src/kernel/ids.js';
import { type AuditFilter, readAuditPage } from '../events/audit-reader.js';
import { parseTimestamp } from '../events/parse-timestamp.js';
import type { Database } from '../store/schema.js';
import type { HandlersFor } from './handler.js';

type Query = QueryOf<typeof auditRoutes.listAuditEvents>;

export const auditHandlers = ({ db }: { readonly db: Kysely<Database> }): HandlersFor<typeof auditRoutes> => ({
  listAuditEvents: async ({ query }) => {
    const limit = clampLimit(query.limit, AUDIT_LIST_LIMIT.standard, AUDIT_LIST_LIMIT.maximum);
    const { events, hasMore } = await readAuditPage(db, filterOf(query), limit);
    const last = events.at(-1);
    return {
      status: 200,
      body: { events: [...events], has_more: hasMore, next_cursor: hasMore && last ? last.id : null },
    };
  },
});

const filterOf = (query: Query): AuditFilter => ({
  agent: text(query, 'agent'),
  operator: text(query, 'operator'),
  eventType: text(query, 'event_type'),
  category: text(query, 'category'),
  after: time(query, 'after'),
  before: time(query, 'before'),
  cursor: cursor(query),
});

function text(query: Query, parameter: 'agent' | 'operator' | 'event_type' | 'category' | 'after' | 'before') {
  const value = query[parameter] ?? undefined;
  if (value === '') throw invalid(parameter, 'is empty', 'leave it out, or give it a value');
  return value;
}

function time(query: Query, parameter: 'after' | 'before'): number | undefined {
  const value = text(query, parameter);
  if (value === undefined) return undefined;
  const parsed = parseTimestamp(value);
  if (parsed !== null) return parsed;
  throw invalid(parameter, 'is no RFC 3339 timestamp', 'write it like 2026-01-31T12:00:00Z; a + has to be sent as %2B');
}

function cursor({ cursor: value }: Query): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (isUlid(value)) return value;
  throw new Fault('invalid_cursor', 'cursor is no event ID', { hint: 'send the next_cursor of the page before' });
}

const invalid = (parameter: string, why: string, hint: string): Fault =>
  new Fault('invalid_filter', `${parameter} ${why}`, { hint, data: { parameter } });
