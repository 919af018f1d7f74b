/** Reads filtered pages of the audit log. */
import { type AuditEvent, SEVERITIES } from '../../src/contract/audit.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { resolveOperatorId } from '../auth/operator-store.js';
import {
  type AuditRow,
  type AuditWindowQuery,
  type LimitedReader,
  listAuditRows,
  metadataOf,
  nodeIdsOfName,
} from '../core/audit-store.js';
import type { Severity } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { findAgentByName } from '../fleet/agent-store.js';

export interface AuditFilter {
  /** Node ID or name of an agent that is the actor or the target. */
  readonly agent?: string | undefined;
  /** ID or username of an operator that is the actor or the target; `operatorIdMeant` resolves a username. */
  readonly operator?: string | undefined;
  readonly eventType?: string | undefined;
  /** Prefix of the event type. */
  readonly category?: string | undefined;
  /** Unix milliseconds, inclusive. */
  readonly after?: number | undefined;
  /** Unix milliseconds, exclusive. */
  readonly before?: number | undefined;
  /** Only events that this reader may read [default: all]. */
  readonly reader?: LimitedReader | undefined;
  /** ID of the last event of the previous page. */
  readonly cursor?: string | undefined;
}

interface AuditPage {
  /** Events, newest first. */
  readonly events: readonly AuditEvent[];
  readonly hasMore: boolean;
}

/** Returns a page of events. Throws `invalid_filter` for a username that several removed operators had. */
export async function readAuditPage(db: Queryable, filter: AuditFilter, limit: number): Promise<AuditPage> {
  const rows = await listAuditRows(db, {
    ...(await windowQueryOf(db, filter)),
    from: filter.after,
    until: filter.before,
    beforeId: filter.cursor,
    limit: limit + 1,
  });
  return { events: rows.slice(0, limit).map(auditEventOf), hasMore: rows.length > limit };
}

/** Returns the part of a filter that is independent of the cursor, with names resolved to IDs. Throws `invalid_filter`. */
export async function windowQueryOf(db: Queryable, filter: AuditFilter): Promise<AuditWindowQuery> {
  return {
    eventTypes: filter.eventType === undefined ? undefined : [filter.eventType],
    category: filter.category,
    reader: filter.reader,
    agents: filter.agent === undefined ? undefined : await agentIds(db, filter.agent),
    operators: filter.operator === undefined ? undefined : [await resolveOperatorId(db, filter.operator)],
  };
}

/** Returns the given text as an ID, and the IDs of agents that have or had it as their name. */
async function agentIds(db: Queryable, nameOrId: string): Promise<readonly string[]> {
  const named = await findAgentByName(db, nameOrId);
  return [...new Set([nameOrId, ...(named ? [named.node_id] : []), ...(await nodeIdsOfName(db, nameOrId))])];
}

export function auditEventOf(row: AuditRow): AuditEvent {
  return {
    id: row.id,
    event_type: row.event_type,
    severity: isSeverity(row.severity) ? row.severity : 'notice',
    summary: row.summary,
    timestamp: toTimestamp(row.timestamp),
    metadata: metadataOf(row),
    actor: { id: row.actor_id, name: row.actor_name, type: row.actor_type },
    target: { id: row.target_id, name: row.target_name, type: row.target_type },
  };
}

const isSeverity = (text: string): text is Severity => SEVERITIES.some((severity) => severity === text);
