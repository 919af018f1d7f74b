/** Migration 4: outputs of scripts in applies. */
import type { Migration } from './migration.js';

export const operationOutputs: Migration = {
  version: 4,
  async up({ schema }) {
    await schema
      .createTable('operation_outputs')
      .addColumn('operation_id', 'text', (column) =>
        column.notNull().references('operations.operation_id').onDelete('cascade'),
      )
      .addColumn('position', 'integer', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('size', 'integer', (column) => column.notNull())
      .addColumn('output', 'text', (column) => column.notNull())
      .addColumn('key_id', 'text')
      .addPrimaryKeyConstraint('operation_outputs_key', ['operation_id', 'position'])
      .execute();
    await schema
      .createIndex('operation_outputs_sealed')
      .on('operation_outputs')
      .columns(['operation_id', 'position', 'key_id'])
      .where('key_id', 'is not', null)
      .execute();
  },
};
