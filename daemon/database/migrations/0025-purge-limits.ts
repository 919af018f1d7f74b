/** Migration 25: how many entries the purges of an apply may delete, which has to outlast a restart. */
import type { Migration } from './migration.js';

export const purgeLimits: Migration = {
  version: 25,
  async up({ schema }) {
    await schema.alterTable('operations').addColumn('may_purge', 'integer').execute();
  },
};
