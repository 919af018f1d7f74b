/** Migration 16: durable rollouts, health checks, confirmed applies, answers to drift, and modes of assignments. */
import type { Kysely } from 'kysely';
import type { Migration } from './migration.js';

type Schema = Kysely<unknown>['schema'];

export const convergence: Migration = {
  version: 16,
  async up({ schema }) {
    await addRollouts(schema);
    await addChecks(schema);
    await addDriftExcuses(schema);
    await addConfirmations(schema);
    await addModes(schema);
  },
};

/** Rollouts and their agents. Rollouts of earlier releases are known only by their operations. */
async function addRollouts(schema: Schema): Promise<void> {
  await schema
    .createTable('rollouts')
    .addColumn('rollout_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('assignment', 'text')
    .addColumn('selector', 'text')
    .addColumn('order_json', 'text', (column) => column.notNull())
    .addColumn('pace_json', 'text', (column) => column.notNull())
    .addColumn('counts_json', 'text', (column) => column.notNull())
    .addColumn('actor_json', 'text', (column) => column.notNull())
    .addColumn('requested_by', 'text', (column) => column.notNull())
    .addColumn('request_id', 'text', (column) => column.notNull())
    .addColumn('started_at', 'integer', (column) => column.notNull())
    .addColumn('finished_at', 'integer')
    .addColumn('passed', 'integer', (column) => column.notNull())
    .addColumn('soaking_until', 'integer')
    .addColumn('expires_at', 'integer')
    .execute();
  await schema.createIndex('rollouts_state').on('rollouts').columns(['state', 'rollout_id']).execute();
  await schema.createIndex('rollouts_assignment').on('rollouts').columns(['assignment', 'rollout_id']).execute();
  await schema
    .createTable('rollout_agents')
    .addColumn('rollout_id', 'text', (column) => column.notNull().references('rollouts.rollout_id').onDelete('cascade'))
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('name', 'text')
    .addColumn('wave', 'integer', (column) => column.notNull())
    .addColumn('expect', 'text')
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('forgiven', 'integer', (column) => column.notNull())
    .addColumn('operation_id', 'text')
    .addColumn('summary_json', 'text')
    .addColumn('error_json', 'text')
    .addPrimaryKeyConstraint('rollout_agents_key', ['rollout_id', 'position'])
    .execute();
  await schema.createIndex('rollout_agents_node').on('rollout_agents').columns(['node_id', 'rollout_id']).execute();
}

/** Results of health checks, kept with the apply that they followed. */
async function addChecks(schema: Schema): Promise<void> {
  await schema.alterTable('operations').addColumn('checks_json', 'text').execute();
}

/** Applies of earlier desired states, and snoozed and accepted drift. */
async function addDriftExcuses(schema: Schema): Promise<void> {
  await schema.alterTable('operations').addColumn('restores', 'text').execute();
  for (const column of ['snoozed', 'accepted']) {
    await schema
      .alterTable('drift_records')
      .addColumn(column, 'integer', (made) => made.notNull().defaultTo(0))
      .execute();
  }
  await schema
    .createTable('drift_snoozes')
    .addColumn('snooze_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('node_id', 'text', (column) => column.notNull().references('agents.node_id').onDelete('cascade'))
    .addColumn('resources_json', 'text')
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('created_at', 'integer', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.notNull())
    .addColumn('ends_at', 'integer', (column) => column.notNull())
    .execute();
  await schema.createIndex('drift_snoozes_of_node').on('drift_snoozes').columns(['node_id', 'ends_at']).execute();
  await schema
    .createTable('drift_accepts')
    .addColumn('node_id', 'text', (column) => column.notNull().references('agents.node_id').onDelete('cascade'))
    .addColumn('family', 'text', (column) => column.notNull())
    .addColumn('identity_key', 'text', (column) => column.notNull())
    .addColumn('module', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('identity', 'text', (column) => column.notNull())
    .addColumn('operation_id', 'text', (column) => column.notNull())
    .addColumn('observed', 'text', (column) => column.notNull())
    .addColumn('drift_id', 'text', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('accepted_at', 'integer', (column) => column.notNull())
    .addColumn('accepted_by', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('drift_accepts_key', ['node_id', 'family', 'identity_key'])
    .execute();
}

/** Applies that are undone unless they are confirmed. */
async function addConfirmations(schema: Schema): Promise<void> {
  await schema.alterTable('operations').addColumn('confirm_secs', 'integer').execute();
  await schema.alterTable('operations').addColumn('confirmed_at', 'integer').execute();
  await schema
    .alterTable('operations')
    .addColumn('keeps_snapshot', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
  await schema.alterTable('operations').addColumn('puts_back', 'text').execute();
  await schema.alterTable('operations').addColumn('restored_json', 'text').execute();
}

/** Modes of assignments, the standing of each agent, and maintenance windows of agents and assignments. */
async function addModes(schema: Schema): Promise<void> {
  await schema
    .alterTable('assignments')
    .addColumn('mode', 'text', (column) => column.notNull().defaultTo('manual'))
    .execute();
  await schema
    .alterTable('assignments')
    .addColumn('counted_from', 'text', (column) => column.notNull().defaultTo(''))
    .execute();
  await schema.alterTable('assignments').addColumn('stopped_id', 'text').execute();
  await schema.alterTable('assignments').addColumn('stopped_reason', 'text').execute();
  await schema
    .alterTable('maintenance_windows')
    .addColumn('kind', 'text', (column) => column.notNull().defaultTo('pause'))
    .execute();
  await schema.alterTable('maintenance_windows').addColumn('selector', 'text').execute();
  await schema
    .alterTable('maintenance_windows')
    .addColumn('assignments_json', 'text', (column) => column.notNull().defaultTo('[]'))
    .execute();
  await schema
    .createTable('agent_standings')
    .addColumn('node_id', 'text', (column) =>
      column.primaryKey().notNull().references('agents.node_id').onDelete('cascade'),
    )
    .addColumn('standing', 'text', (column) => column.notNull())
    .addColumn('since', 'integer', (column) => column.notNull())
    .addColumn('reason', 'text')
    .addColumn('wanted_sha256', 'text')
    .addColumn('counted_from', 'text', (column) => column.notNull())
    .addColumn('stopped_id', 'text')
    .addColumn('stopped_at', 'integer')
    .addColumn('stopped_code', 'text')
    .addColumn('stopped_reason', 'text')
    .execute();
}
