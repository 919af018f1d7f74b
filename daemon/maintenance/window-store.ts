/** Maintenance windows as rows, as API objects and as audit events. Times are Unix milliseconds. */
import type { Updateable } from 'kysely';
import type { MaintenanceWindow } from '../../src/contract/maintenance-windows.js';
import { toSeconds, toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { type DomainEvent, eventOfRequest, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import type { MaintenanceWindowTable, Queryable, Row } from '../database/schema.js';

interface WindowValues {
  readonly assignments: readonly string[];
}

const columns = jsonColumns<WindowValues>({ assignments: true });

export type WindowRow = Decoded<Row<'maintenance_windows'>, WindowValues>;

/** Returns all windows, latest start first. */
export async function listWindows(db: Queryable): Promise<readonly WindowRow[]> {
  const rows = await db
    .selectFrom('maintenance_windows')
    .selectAll()
    .orderBy('starts_at', 'desc')
    .orderBy('window_id', 'desc')
    .execute();
  return rows.map((row) => columns.decode(row));
}

export async function findWindow(db: Queryable, id: string): Promise<WindowRow | null> {
  const row = await db.selectFrom('maintenance_windows').selectAll().where('window_id', '=', id).executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

export async function insertWindow(db: Queryable, row: WindowRow): Promise<void> {
  await db.insertInto('maintenance_windows').values(columns.encode(row)).execute();
}

export async function updateWindow(
  db: Queryable,
  id: string,
  change: Omit<Updateable<MaintenanceWindowTable>, 'window_id'>,
): Promise<void> {
  await db.updateTable('maintenance_windows').set(change).where('window_id', '=', id).execute();
}

export async function deleteWindow(db: Queryable, id: string): Promise<void> {
  await db.deleteFrom('maintenance_windows').where('window_id', '=', id).execute();
}

type Times = Pick<WindowRow, 'starts_at' | 'ends_at'>;

/** Returns true from the start up to, but not including, the end. */
export const isActive = ({ starts_at, ends_at }: Times, now: number): boolean => starts_at <= now && now < ends_at;

/** Returns true while the window keeps the whole fleet quiet: no drift checks, automatic applies and deliveries. */
export const pausesAll = (row: WindowRow, now: number): boolean =>
  row.kind === 'pause' && row.selector === null && isActive(row, now);

/** Returns the names among these that no assignment has. */
export async function unknownAssignments(db: Queryable, names: readonly string[]): Promise<readonly string[]> {
  if (names.length === 0) return [];
  const rows = await db.selectFrom('assignments').select('name').where('name', 'in', names).execute();
  const known = new Set(rows.map(({ name }) => name));
  return names.filter((name) => !known.has(name));
}

/** Returns true once the end has passed. It stays true after its end was recorded, even when the clock is set back. */
export const hasEnded = ({ ends_at, told }: WindowRow, now: number): boolean => told === 'ended' || ends_at <= now;

export const windowParty = ({ window_id, reason }: WindowRow): Party => ({
  id: window_id,
  name: reason,
  type: 'window',
});

export const windowDetails = ({ reason, starts_at, ends_at, kind, selector, assignments }: WindowRow): JsonObject => ({
  kind,
  ...(selector === null ? {} : { selector }),
  ...(assignments.length === 0 ? {} : { assignments: [...assignments] }),
  reason,
  starts_at: toTimestamp(starts_at),
  ends_at: toTimestamp(ends_at),
});

export const windowView = (row: WindowRow, now: number): MaintenanceWindow => ({
  id: row.window_id,
  reason: row.reason,
  starts_at: toSeconds(row.starts_at),
  ends_at: toSeconds(row.ends_at),
  created_by: row.created_by,
  created_at: toSeconds(row.created_at),
  kind: row.kind,
  selector: row.selector,
  assignments: [...row.assignments],
  status: hasEnded(row, now) ? 'ended' : isActive(row, now) ? 'active' : 'scheduled',
});

export const windowNotFound = (id: string): Fault =>
  new Fault('maintenance_window_not_found', `there is no maintenance window ${id}`, {
    hint: 'see what there is: orch maintenance list',
  });

/** Start or end of a window. Each is recorded once, whenever it is noticed. */
export interface WindowTransition {
  readonly row: WindowRow;
  /** State of the window in the audit log once this is recorded. */
  readonly told: 'started' | 'ended';
  /** Scheduled time in Unix milliseconds. */
  readonly at: number;
}

/**
 * Returns the moments up to `now` that are not recorded yet, in order. A start sorts before an end at the same time.
 */
export function transitionsUntil(now: number, rows: readonly WindowRow[]): readonly WindowTransition[] {
  const due = rows.flatMap((row) => transitionsOf(row)).filter(({ at }) => at <= now);
  return due.sort((a, b) => a.at - b.at || (a.told === b.told ? 0 : a.told === 'started' ? -1 : 1));
}

function transitionsOf(row: WindowRow): readonly WindowTransition[] {
  const end: WindowTransition = { row, told: 'ended', at: row.ends_at };
  switch (row.told) {
    case 'nothing':
      return [{ row, told: 'started', at: row.starts_at }, end];
    case 'started':
      return [end];
    case 'ended':
      return [];
  }
}

/** Builds the audit event; `context` is the request that caused the moment, or null when its time had come. */
export function transitionEvent({ row, told, at }: WindowTransition, context: RequestContext | null): DomainEvent {
  const event = {
    type: `maintenance.${told}`,
    target: windowParty(row),
    summary: `the maintenance window "${row.reason}" has ${told === 'started' ? 'begun' : 'ended'}`,
    metadata: { at: toTimestamp(at), ...windowDetails(row) },
  } as const;
  return context === null ? { ...event, actor: SYSTEM } : eventOfRequest(context, event);
}
