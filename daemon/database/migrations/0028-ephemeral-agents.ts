/** Migration 28: agents that are removed after a time without a connection, and the tokens that let them in. */
import type { Migration } from './migration.js';

export const ephemeralAgents: Migration = {
  version: 28,
  async up({ schema }) {
    await schema.alterTable('enrolment_tokens').addColumn('ephemeral_secs', 'integer').execute();
    await schema.alterTable('agents').addColumn('ephemeral_secs', 'integer').execute();
  },
};
