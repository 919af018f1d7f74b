/** Migration 5: signed marks in the audit log. */
import { type Migration, refuseUpdates } from './migration.js';

export const auditMarks: Migration = {
  version: 5,
  async up(db) {
    await db.schema
      .createTable('audit_marks')
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('seq', 'integer', (column) => column.notNull())
      .addColumn('epoch', 'integer', (column) => column.notNull())
      .addColumn('hash', 'text', (column) => column.notNull())
      .addColumn('time', 'integer', (column) => column.notNull())
      .addColumn('public_key', 'text', (column) => column.notNull())
      .addColumn('signature', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('audit_marks_key', ['kind', 'seq'])
      .execute();
    await refuseUpdates(db, 'audit_marks');
  },
};
