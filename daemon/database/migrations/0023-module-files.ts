/** Migration 23: files beside modules, in parts, and what names them. */
import type { Migration } from './migration.js';

export const moduleFiles: Migration = {
  version: 23,
  async up({ schema }) {
    await schema
      .createTable('module_files')
      .addColumn('sha256', 'text', (column) => column.primaryKey().notNull())
      .addColumn('size', 'integer', (column) => column.notNull())
      .addColumn('received', 'integer', (column) => column.notNull())
      .addColumn('is_complete', 'integer', (column) => column.notNull())
      .addColumn('named_at', 'integer', (column) => column.notNull())
      .execute();
    await schema
      .createTable('module_file_parts')
      .addColumn('sha256', 'text', (column) => column.notNull().references('module_files.sha256').onDelete('cascade'))
      .addColumn('position', 'integer', (column) => column.notNull())
      .addColumn('data', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('module_file_parts_key', ['sha256', 'position'])
      .execute();
    await schema
      .createTable('revision_files')
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('revision', 'integer', (column) => column.notNull())
      .addColumn('sha256', 'text', (column) => column.notNull().references('module_files.sha256'))
      .addPrimaryKeyConstraint('revision_files_key', ['name', 'revision', 'sha256'])
      .addForeignKeyConstraint(
        'revision_files_revision',
        ['name', 'revision'],
        'module_revisions',
        ['name', 'revision'],
        (constraint) => constraint.onDelete('cascade'),
      )
      .execute();
    await schema
      .createTable('text_files')
      .addColumn('text_sha256', 'text', (column) =>
        column.notNull().references('module_texts.sha256').onDelete('cascade'),
      )
      .addColumn('sha256', 'text', (column) => column.notNull().references('module_files.sha256'))
      .addPrimaryKeyConstraint('text_files_key', ['text_sha256', 'sha256'])
      .execute();
    await schema
      .createTable('content_files')
      .addColumn('content_id', 'integer', (column) =>
        column.notNull().references('run_contents.content_id').onDelete('cascade'),
      )
      .addColumn('sha256', 'text', (column) => column.notNull().references('module_files.sha256'))
      .addPrimaryKeyConstraint('content_files_key', ['content_id', 'sha256'])
      .execute();
    for (const table of ['revision_files', 'text_files', 'content_files']) {
      await schema.createIndex(`${table}_by_file`).on(table).column('sha256').execute();
    }
  },
};
