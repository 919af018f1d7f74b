/** Migration 22: values that applies and rollouts bring with them, and the history of value sets. */
import type { Kysely } from 'kysely';
import type { Migration } from './migration.js';

export const oneOffValues: Migration = {
  version: 22,
  async up(untyped) {
    const db = untyped as Kysely<Changed>;
    const { schema } = db;
    await schema
      .createTable('one_off_values')
      .addColumn('sha256', 'text', (column) => column.primaryKey().notNull())
      .addColumn('texts_json', 'text', (column) => column.notNull())
      .addColumn('read_json', 'text', (column) => column.notNull())
      .execute();
    for (const table of ['operations', 'rollouts'] as const) {
      await schema.alterTable(table).addColumn('values_sha256', 'text').execute();
      await schema.alterTable(table).addColumn('value_inputs_json', 'text').execute();
      await schema
        .createIndex(`${table}_values`)
        .on(table)
        .columns(['values_sha256'])
        .where('values_sha256', 'is not', null)
        .execute();
    }
    await schema
      .createTable('value_set_revisions')
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('revision', 'integer', (column) => column.notNull())
      .addColumn('sha256', 'text')
      .addColumn('content', 'text')
      .addColumn('uploaded_at', 'integer', (column) => column.notNull())
      .addColumn('uploaded_by', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('value_set_revisions_key', ['name', 'revision'])
      .execute();
    const columns = ['name', 'revision', 'sha256', 'content', 'uploaded_at', 'uploaded_by'] as const;
    await db
      .insertInto('value_set_revisions')
      .columns([...columns])
      .expression((of) => of.selectFrom('value_sets').select([...columns]))
      .execute();
  },
};

interface Revision {
  name: string;
  revision: number;
  sha256: string;
  content: string;
  uploaded_at: number;
  uploaded_by: string;
}

interface Changed {
  operations: { values_sha256: string | null };
  rollouts: { values_sha256: string | null };
  value_sets: Revision;
  value_set_revisions: Revision;
}
