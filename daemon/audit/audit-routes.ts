/** Route handlers of the audit log: list, follow, prune, retention and verification. */

import type { Kysely } from 'kysely';
import { AUDIT_LIST_LIMIT, type auditRoutes } from '../../src/contract/audit.js';
import type { Operator } from '../../src/contract/operators.js';
import type { QueryOf } from '../../src/contract/route.js';
import { clampLimit } from '../../src/contract/shapes.js';
import { Fault } from '../../src/kernel/fault.js';
import { isUlid } from '../../src/kernel/ids.js';
import { nearest } from '../../src/language/nearest.js';
import { EVENT_SEVERITY } from '../core/domain-event.js';
import { tagged } from '../core/entity-tag.js';
import type { Rights } from '../core/rights.js';
import type { Database } from '../database/schema.js';
import type { Machines } from '../fleet/machines.js';
import type { Handler, HandlersFor } from '../http/handler.js';
import { parseTimestamp } from '../http/parse-timestamp.js';
import { linkTo } from '../http/query-string.js';
import type { Audit } from './audit.js';
import { type AuditFilter, readAuditPage } from './audit-reader.js';
import { parseCheckpoint } from './checkpoint.js';

type Routes = typeof auditRoutes;
type ListQuery = QueryOf<Routes['listAuditEvents']>;
type Query = QueryOf<Routes['streamEvents']> & Pick<ListQuery, 'before'>;

interface AuditServices extends Audit {
  readonly machines: Machines;
  readonly db: Kysely<Database>;
}

export const auditHandlers = (services: AuditServices): HandlersFor<Routes> => ({
  listAuditEvents: listAuditEvents(services),
  pruneAuditEvents: async ({ query, context, signal }) => {
    const before = parseTimestamp(query.before);
    if (before === null) {
      throw new Fault('invalid_cutoff', 'before is no RFC 3339 timestamp', { hint: HOW_TO_WRITE_TIMES });
    }
    return { status: 200, body: { deleted: await services.pruning.prune(before, context, signal) } };
  },
  getAuditRetention: async () => {
    const body = { retention_days: await services.retention.days() };
    return { status: 200, ...tagged(body, body) };
  },
  setAuditRetention: async ({ body, context }) => {
    await services.retention.set(body.retention_days, context);
    return { status: 200, ...tagged(body, body) };
  },
  verifyAudit: async ({ query, signal }) => {
    const since = query.since ?? null;
    const mark = since === null ? null : parseCheckpoint(since);
    if (since !== null && mark === null) throw noCheckpoint();
    return { status: 200, body: await services.verification.run({ since: mark, signal }) };
  },
  streamEvents: streamEvents(services),
});

const listAuditEvents =
  ({ db, machines }: AuditServices): Handler<Routes['listAuditEvents']> =>
  async ({ query, operator, rights }) => {
    const limit = clampLimit(query.limit, AUDIT_LIST_LIMIT.standard, AUDIT_LIST_LIMIT.maximum);
    const filter = {
      ...filterOf(query),
      reader: await readerOf(machines, operator, rights),
      before: time(query, 'before'),
      cursor: eventId(query.cursor ?? null, 'send the next_cursor of the page before'),
    };
    const { events, hasMore } = await readAuditPage(db, filter, limit);
    const cursor = hasMore ? (events.at(-1)?.id ?? null) : null;
    return {
      status: 200,
      body: { events: [...events], has_more: hasMore, next_cursor: cursor },
      headers: cursor === null ? {} : linkTo('/audit', { ...query, limit, cursor }),
    };
  };

/** Streams events until the client, the session or the orchestrator ends the stream. */
const streamEvents =
  ({ feed, machines }: AuditServices): Handler<Routes['streamEvents']> =>
  async ({ query, signal, events, operator, rights, context }) => {
    const { after = null, ...filter } = filterOf(query);
    const behind = eventId(events?.lastId || null, 'send the ID of the last event as Last-Event-ID') ?? null;
    if (events === null) return { status: 200, body: '' };
    let isOpen = false;
    const reader = { operatorId: operator.operator_id, isAdmin: operator.role === 'admin', address: context.address };
    const limits = () => readerOf(machines, operator, rights);
    for await (const page of feed.follow({ filter, after, behind, signal, limits, reader })) {
      if (!isOpen) await events.open(page.place);
      isOpen = true;
      if (page.gap !== null) await events.gap(page.gap);
      for (const event of page.events) {
        if (signal.aborted) break;
        await events.send(event.id, event);
      }
      if (signal.aborted) break;
      await events.beat(page.place);
    }
    return { status: 200, body: '' };
  };

/** Returns which events an operator with grants may read: their own, and those of their machines. */
async function readerOf(
  machines: Machines,
  { operator_id: operatorId }: Pick<Operator, 'operator_id'>,
  rights: Rights,
): Promise<AuditFilter['reader']> {
  const readable = await machines.history(rights);
  return readable === null ? undefined : { operatorId, ...readable };
}

const filterOf = (query: Query): AuditFilter => ({
  agent: text(query, 'agent'),
  operator: text(query, 'operator'),
  eventType: knownType(text(query, 'event_type')),
  category: knownCategory(text(query, 'category')),
  after: time(query, 'after'),
});

function text(query: Query, parameter: keyof Query) {
  const value = query[parameter] ?? undefined;
  if (value === '') throw invalid(parameter, 'is empty', 'leave it out, or give it a value');
  return value;
}

const EVENT_TYPES: readonly string[] = Object.keys(EVENT_SEVERITY);

/** Returns the type. Throws `invalid_filter` for an unknown type: a reader that follows it would wait for ever. */
function knownType(type: string | undefined): string | undefined {
  if (type === undefined || EVENT_TYPES.includes(type)) return type;
  const meant = nearest(type, EVENT_TYPES);
  const hint = meant === null ? 'leave it out to see which types there are' : `did you mean "${meant}"?`;
  throw invalid('event_type', `names no type of event: "${type}"`, hint);
}

function knownCategory(category: string | undefined): string | undefined {
  if (category === undefined || EVENT_TYPES.some((type) => type.startsWith(category))) return category;
  const categories = new Set(EVENT_TYPES.map((type) => type.split('.')[0] ?? ''));
  throw invalid('category', `begins no type of event: "${category}"`, `there are ${[...categories].join(', ')}`);
}

const HOW_TO_WRITE_TIMES = 'write it like 2026-01-31T12:00:00Z; a + has to be sent as %2B';

function time(query: Query, parameter: 'after' | 'before'): number | undefined {
  const value = text(query, parameter);
  if (value === undefined) return undefined;
  const parsed = parseTimestamp(value);
  if (parsed !== null) return parsed;
  throw invalid(parameter, 'is no RFC 3339 timestamp', HOW_TO_WRITE_TIMES);
}

function eventId(value: string | null, hint: string): string | undefined {
  if (value === null) return undefined;
  if (isUlid(value)) return value;
  throw new Fault('invalid_cursor', `"${value}" is no event ID`, { hint });
}

const invalid = (parameter: string, why: string, hint: string): Fault =>
  new Fault('invalid_filter', `${parameter} ${why}`, { hint, data: { parameter } });

const noCheckpoint = (): Fault =>
  new Fault('invalid_checkpoint', 'since is no checkpoint of an audit log', {
    hint: 'give the whole text that begins with orch-checkpoint-v1.',
  });
