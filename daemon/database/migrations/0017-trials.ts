/** Migration 17: texts of modules that applies and rollouts carry, and trials of such texts on agents. */
import type { Kysely } from 'kysely';
import type { Migration } from './migration.js';

type Schema = Kysely<unknown>['schema'];

export const trials: Migration = {
  version: 17,
  async up({ schema }) {
    await addTexts(schema);
    await schema.alterTable('agents').addColumn('trial_operation_id', 'text').execute();
  },
};

async function addTexts(schema: Schema): Promise<void> {
  await schema
    .createTable('module_texts')
    .addColumn('sha256', 'text', (column) => column.primaryKey().notNull())
    .addColumn('content', 'text', (column) => column.notNull())
    .addColumn('definition_json', 'text', (column) => column.notNull())
    .execute();
  await schema
    .createTable('operation_sources')
    .addColumn('operation_id', 'text', (column) =>
      column.notNull().references('operations.operation_id').onDelete('cascade'),
    )
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('sha256', 'text', (column) => column.notNull())
    .addColumn('replaces', 'text')
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('others', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('operation_sources_key', ['operation_id', 'name'])
    .execute();
  await schema.createIndex('operation_sources_text').on('operation_sources').columns(['sha256', 'name']).execute();
  await schema
    .createTable('rollout_sources')
    .addColumn('rollout_id', 'text', (column) => column.notNull().references('rollouts.rollout_id').onDelete('cascade'))
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('sha256', 'text', (column) => column.notNull())
    .addColumn('replaces', 'text')
    .addPrimaryKeyConstraint('rollout_sources_key', ['rollout_id', 'position'])
    .execute();
  await schema.createIndex('rollout_sources_text').on('rollout_sources').columns(['sha256']).execute();
}
