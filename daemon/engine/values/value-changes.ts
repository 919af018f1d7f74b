/** Changes of the values that the orchestrator stores, as the audit log has them. */
import type { ValueChange } from '../../../src/contract/rollouts.js';
import { toSeconds } from '../../../src/kernel/clock.js';
import { isSameJson } from '../../../src/kernel/json.js';
import { type AuditRow, listAuditRows, metadataOf } from '../../core/audit-store.js';
import type { EventType } from '../../core/domain-event.js';
import type { Queryable } from '../../database/schema.js';

/** Events that may change the values of agents. */
export const VALUE_EVENTS: readonly EventType[] = [
  'values.uploaded',
  'values.deleted',
  'assignment.created',
  'assignment.updated',
  'assignment.deleted',
];

/** Maximum number of events that are searched. */
const EVENTS = 200;

interface Period {
  /** Unix milliseconds. */
  readonly from: number;
  /** ID after which events count, where one millisecond may have several; null for all. */
  readonly after?: string | null;
  /** Unix milliseconds, exclusive; null for now. */
  readonly until?: number | null;
}

/** Returns the events of changes of value sets and of values of assignments, the newest first. */
export async function valueEvents(
  db: Queryable,
  { from, after = null, until = null }: Period,
): Promise<readonly AuditRow[]> {
  const rows = await listAuditRows(db, {
    eventTypes: [...VALUE_EVENTS],
    from,
    ...(until === null ? {} : { until }),
    limit: EVENTS,
  });
  return rows.filter((row) => (after === null || row.id > after) && changesValues(row));
}

/** Returns the newest change of each value set and each assignment, the newest first. */
export async function valueChanges(db: Queryable, period: Period): Promise<readonly ValueChange[]> {
  const newest = new Map<string, ValueChange>();
  for (const { event_type, target_id, timestamp, actor_name } of await valueEvents(db, period)) {
    const source = event_type.startsWith('values.') ? 'values' : 'assignment';
    const key = `${source} ${target_id}`;
    if (!newest.has(key)) newest.set(key, { source, name: target_id, at: toSeconds(timestamp), by: actor_name });
  }
  return [...newest.values()];
}

interface AssignmentMetadata {
  readonly before?: { readonly values?: unknown };
  readonly after?: { readonly values?: unknown };
  /** Of a created assignment. */
  readonly values?: unknown;
}

/** Returns false for a change of an assignment that leaves its values as they are. */
function changesValues(row: AuditRow): boolean {
  if (!row.event_type.startsWith('assignment.')) return true;
  const { before, after, values } = metadataOf<AssignmentMetadata>(row);
  return !isSameJson(before?.values ?? null, after?.values ?? values ?? null);
}
