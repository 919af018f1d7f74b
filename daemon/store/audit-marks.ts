/** Signed places in the audit log as rows; `daemon/events` signs and checks them. */
import type { Queryable } from './queryable.js';
import type { Row } from './schema.js';

export type AuditMarkRow = Row<'audit_marks'>;

export async function insertAuditMark(db: Queryable, row: AuditMarkRow): Promise<void> {
  await db.insertInto('audit_marks').values(row).execute();
}

/** The newest first. */
export async function newestCheckpoints(db: Queryable, limit: number): Promise<readonly AuditMarkRow[]> {
  return db
    .selectFrom('audit_marks')
    .selectAll()
    .where('kind', '=', 'checkpoint')
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute();
}

/** Those of the events behind `after` up to and with `to`, in order. */
export async function checkpointsBetween(db: Queryable, after: number, to: number): Promise<readonly AuditMarkRow[]> {
  return db
    .selectFrom('audit_marks')
    .selectAll()
    .where('kind', '=', 'checkpoint')
    .where('seq', '>', after)
    .where('seq', '<=', to)
    .orderBy('seq')
    .execute();
}

/** Where the log was cut off at its old end, null when it never was. */
export async function findAuditCut(db: Queryable): Promise<AuditMarkRow | null> {
  const cut = await db
    .selectFrom('audit_marks')
    .selectAll()
    .where('kind', '=', 'cut')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
  return cut ?? null;
}

/** Those that another key has signed, the newest first. */
export async function auditMarksOfOtherKeys(db: Queryable, publicKey: string): Promise<readonly AuditMarkRow[]> {
  return db.selectFrom('audit_marks').selectAll().where('public_key', '!=', publicKey).orderBy('seq', 'desc').execute();
}

/** The cut takes the place of the one before, and of the checkpoints that lie before it. */
export async function replaceAuditCut(db: Queryable, row: AuditMarkRow): Promise<void> {
  await db.deleteFrom('audit_marks').where('kind', '=', 'cut').execute();
  await db.deleteFrom('audit_marks').where('seq', '<=', row.seq).execute();
  await insertAuditMark(db, row);
}

export async function deleteCheckpoint(db: Queryable, seq: number): Promise<void> {
  await db.deleteFrom('audit_marks').where('kind', '=', 'checkpoint').where('seq', '=', seq).execute();
}
