/** Assignments. Rows as they are stored: `modules_json` is for the caller to parse. */
import type { Updateable } from 'kysely';
import { getMeta, setMeta } from '../database/meta.js';
import type { AssignmentTable, NewRow, Queryable, Row } from '../database/schema.js';

export type AssignmentRow = Row<'assignments'>;

/** Where the store keeps what changes with every change of any assignment. */
const REVISION = 'assignments.revision';

/** Another text after each change; null while there was none. */
export const assignmentsRevision = (db: Queryable): Promise<string | null> => getMeta(db, REVISION);

/** To be called in the transaction of every change, with a text that was never given before. */
export const setAssignmentsRevision = (db: Queryable, revision: string): Promise<void> =>
  setMeta(db, REVISION, revision);

/** By name. */
export async function listAssignments(db: Queryable): Promise<readonly AssignmentRow[]> {
  return db.selectFrom('assignments').selectAll().orderBy('name').execute();
}

export async function findAssignment(db: Queryable, name: string): Promise<AssignmentRow | null> {
  return (await db.selectFrom('assignments').selectAll().where('name', '=', name).executeTakeFirst()) ?? null;
}

export async function insertAssignment(db: Queryable, assignment: NewRow<'assignments'>): Promise<void> {
  await db.insertInto('assignments').values(assignment).execute();
}

/** False when there is no such assignment. */
export async function updateAssignment(
  db: Queryable,
  name: string,
  change: Pick<Updateable<AssignmentTable>, 'modules_json' | 'selector' | 'description'>,
): Promise<boolean> {
  const result = await db.updateTable('assignments').set(change).where('name', '=', name).executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** False when there is no such assignment. */
export async function deleteAssignment(db: Queryable, name: string): Promise<boolean> {
  const result = await db.deleteFrom('assignments').where('name', '=', name).executeTakeFirst();
  return result.numDeletedRows > 0n;
}
