/** Migration 20: resources that react when an applied resource goes. */
import type { Migration } from './migration.js';

export const listeners: Migration = {
  version: 20,
  async up({ schema }) {
    await schema.alterTable('applied_resources').addColumn('listeners_json', 'text').execute();
  },
};
