/**
 * Migration 13: the contents of runs are stored once, by their hash, instead of in every operation. A row of results may stand
 * for consecutive resources that were found as desired. Agents remember the content that their whole believed state equals.
 */
import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import type { Migration } from './migration.js';

/** Operations converted at a time. */
const AT_ONCE = 200;

export const runContents: Migration = {
  version: 13,
  async up(untyped) {
    const db = untyped as Kysely<Before>;
    const { schema } = db;
    await schema
      .createTable('run_contents')
      .addColumn('content_id', 'integer', (column) => column.primaryKey().notNull())
      .addColumn('sha256', 'text', (column) => column.notNull().unique())
      .addColumn('content_json', 'text', (column) => column.notNull())
      .execute();
    for (const [table, name] of REFERENCES) {
      await schema
        .alterTable(table)
        .addColumn(name, 'integer', (column) => column.references('run_contents.content_id'))
        .execute();
      await schema.createIndex(`${table}_content`).on(table).column(name).execute();
    }
    await schema.alterTable('operations').addColumn('expect', 'text').execute();
    await schema.alterTable('operation_results').addColumn('unchanged', 'integer').execute();
    await moveContents(db);
    await schema.alterTable('operations').dropColumn('desired_json').execute();
    await schema.alterTable('operations').dropColumn('removals_json').execute();
  },
};

const REFERENCES = [
  ['operations', 'content_id'],
  ['drift_records', 'content_id'],
  ['agents', 'state_content_id'],
] as const;

async function moveContents(db: Kysely<Before>): Promise<void> {
  for (let last = ''; ; ) {
    const rows = await db
      .selectFrom('operations')
      .select(['operation_id', 'desired_json', 'removals_json'])
      .where('operation_id', '>', last)
      .orderBy('operation_id')
      .limit(AT_ONCE)
      .execute();
    for (const row of rows) await moveContent(db, row);
    if (rows.length < AT_ONCE) return;
    last = rows[rows.length - 1]?.operation_id ?? last;
  }
}

async function moveContent(db: Kysely<Before>, row: Before['operations']): Promise<void> {
  const { resources = [], ad_hoc = [], expect = null, secrets = {}, failures = [] } = JSON.parse(row.desired_json);
  const removals = JSON.parse(row.removals_json);
  const content_json = JSON.stringify({ resources, removals, failures, ad_hoc, secrets });
  const sha256 = createHash('sha256').update(content_json).digest('hex');
  await db
    .insertInto('run_contents')
    .values({ sha256, content_json })
    .onConflict((conflict) => conflict.column('sha256').doNothing())
    .execute();
  await db
    .updateTable('operations')
    .set((from) => ({
      content_id: from.selectFrom('run_contents').select('content_id').where('sha256', '=', sha256),
      expect,
    }))
    .where('operation_id', '=', row.operation_id)
    .execute();
}

interface Before {
  operations: {
    operation_id: string;
    desired_json: string;
    removals_json: string;
    content_id?: number;
    expect?: string | null;
  };
  run_contents: { content_id?: number; sha256: string; content_json: string };
}
