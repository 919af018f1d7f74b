/** Migration 17: results of health checks, kept with the apply that they followed. */
import type { Migration } from './migration.js';

export const verify: Migration = {
  version: 17,
  async up({ schema }) {
    await schema.alterTable('operations').addColumn('checks_json', 'text').execute();
  },
};
