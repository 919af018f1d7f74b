/** Migration 10: terminal sessions and commands on agents, with their operator, end and recording. */
import type { Migration } from './migration.js';

export const terminalSessions: Migration = {
  version: 10,
  async up({ schema }) {
    await schema
      .createTable('terminal_sessions')
      .addColumn('session_id', 'text', (column) => column.primaryKey().notNull())
      .addColumn('node_id', 'text', (column) => column.notNull())
      .addColumn('node_name', 'text')
      .addColumn('operator_id', 'text', (column) => column.notNull())
      .addColumn('operator', 'text', (column) => column.notNull())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('user', 'text')
      .addColumn('shell', 'text')
      .addColumn('command_json', 'text')
      .addColumn('cols', 'integer', (column) => column.notNull())
      .addColumn('rows', 'integer', (column) => column.notNull())
      .addColumn('term', 'text', (column) => column.notNull())
      .addColumn('status', 'text', (column) => column.notNull())
      .addColumn('reason', 'text')
      .addColumn('exit_code', 'integer')
      .addColumn('exit_signal', 'text')
      .addColumn('opened_at', 'integer', (column) => column.notNull())
      .addColumn('closed_at', 'integer')
      .addColumn('recording', 'text', (column) => column.notNull())
      .addColumn('transcript', 'text')
      .addColumn('transcript_sha256', 'text')
      .addColumn('output_bytes', 'integer', (column) => column.notNull())
      .addColumn('resume_hash', 'text')
      .addColumn('resume_operator_id', 'text')
      .execute();
    const index = (name: string, columns: string[]) =>
      schema.createIndex(name).on('terminal_sessions').columns(columns).execute();
    await index('terminal_sessions_status', ['status', 'session_id']);
    await index('terminal_sessions_node', ['node_id', 'session_id']);
    await index('terminal_sessions_operator', ['operator_id', 'session_id']);
    await index('terminal_sessions_recording', ['recording', 'closed_at']);
  },
};
