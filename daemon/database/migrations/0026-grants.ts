/** Migration 26: grants of operators, and the machines within which an assignment matches. */
import type { Migration } from './migration.js';

export const grants: Migration = {
  version: 26,
  async up({ schema }) {
    await schema.alterTable('operators').addColumn('grants_json', 'text').execute();
    await schema.alterTable('assignments').addColumn('scope_json', 'text').execute();
  },
};
