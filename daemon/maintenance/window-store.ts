/** Maintenance windows. Times are milliseconds. */
import type { Updateable } from 'kysely';
import type { MaintenanceWindowTable, NewRow, Queryable, Row } from '../database/schema.js';

export type WindowRow = Row<'maintenance_windows'>;

/** The latest start first. */
export async function listWindows(db: Queryable): Promise<readonly WindowRow[]> {
  return db
    .selectFrom('maintenance_windows')
    .selectAll()
    .orderBy('starts_at', 'desc')
    .orderBy('window_id', 'desc')
    .execute();
}

export async function findWindow(db: Queryable, id: string): Promise<WindowRow | null> {
  const row = await db.selectFrom('maintenance_windows').selectAll().where('window_id', '=', id).executeTakeFirst();
  return row ?? null;
}

export async function insertWindow(db: Queryable, row: NewRow<'maintenance_windows'>): Promise<void> {
  await db.insertInto('maintenance_windows').values(row).execute();
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
