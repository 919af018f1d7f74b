/**
 * Migration 7: notifications, their channels and deliveries, and the state that decides whether an event raises one.
 */
import { type Kysely, sql } from 'kysely';
import { storeKindOf } from '../store-driver.js';
import type { Migration } from './migration.js';

export const notifications: Migration = {
  version: 7,
  async up(db) {
    await createChannels(db);
    await createNotifications(db);
    await createDeliveries(db);
    await createWatches(db);
  },
};

type Schema = Kysely<unknown>;

async function createChannels({ schema }: Schema): Promise<void> {
  await schema
    .createTable('channels')
    .addColumn('channel_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('channel_type', 'text', (column) => column.notNull())
    .addColumn('sealed', 'text', (column) => column.notNull())
    .addColumn('key_id', 'text', (column) => column.notNull())
    .addColumn('row_version', 'integer', (column) => column.notNull())
    .addColumn('created_at', 'integer', (column) => column.notNull())
    .addColumn('created_by', 'text', (column) => column.notNull())
    .addColumn('disabled_at', 'integer')
    .addColumn('failing', 'integer', (column) => column.notNull())
    .addColumn('attempted_at', 'integer')
    .addColumn('attempt_status', 'integer')
    .addColumn('attempt_error', 'text')
    .execute();
}

async function createNotifications({ schema }: Schema): Promise<void> {
  await schema
    .createTable('notifications')
    .addColumn('seq', 'integer', (column) => column.primaryKey().autoIncrement().notNull())
    .addColumn('id', 'text', (column) => column.notNull().unique())
    .addColumn('event_id', 'text', (column) => column.notNull().unique())
    .addColumn('event_type', 'text', (column) => column.notNull())
    .addColumn('severity', 'text', (column) => column.notNull())
    .addColumn('summary', 'text', (column) => column.notNull())
    .addColumn('timestamp', 'integer', (column) => column.notNull())
    .addColumn('actor_json', 'text', (column) => column.notNull())
    .addColumn('target_json', 'text', (column) => column.notNull())
    .addColumn('metadata_json', 'text', (column) => column.notNull())
    .execute();
  await schema.createIndex('notifications_age').on('notifications').column('timestamp').execute();
  await schema
    .createTable('notification_reads')
    .addColumn('operator_id', 'text', (column) => column.notNull())
    .addColumn('seq', 'integer', (column) => column.notNull().references('notifications.seq').onDelete('cascade'))
    .addPrimaryKeyConstraint('notification_reads_key', ['operator_id', 'seq'])
    .execute();
  await schema.createIndex('notification_reads_seq').on('notification_reads').column('seq').execute();
  await schema
    .createTable('notification_readers')
    .addColumn('operator_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('read_to', 'integer', (column) => column.notNull())
    .execute();
}

async function createDeliveries({ schema }: Schema): Promise<void> {
  await schema
    .createTable('deliveries')
    .addColumn('channel_id', 'text', (column) => column.notNull().references('channels.channel_id').onDelete('cascade'))
    .addColumn('seq', 'integer', (column) => column.notNull().references('notifications.seq').onDelete('cascade'))
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('attempts', 'integer', (column) => column.notNull())
    .addColumn('next_at', 'integer')
    .addColumn('status_code', 'integer')
    .addColumn('error', 'text')
    .addColumn('updated_at', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('deliveries_key', ['channel_id', 'seq'])
    .execute();
  await schema.createIndex('deliveries_seq').on('deliveries').column('seq').execute();
  await schema
    .createIndex('deliveries_due')
    .on('deliveries')
    .columns(['channel_id', 'next_at'])
    .where('next_at', 'is not', null)
    .execute();
}

async function createWatches(db: Schema): Promise<void> {
  const { schema } = db;
  await schema
    .createTable('agent_absences')
    .addColumn('node_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('connected_at', 'integer')
    .addColumn('away_since', 'integer')
    .addColumn('event_json', 'text')
    .execute();
  await schema.createIndex('agent_absences_since').on('agent_absences').column('away_since').execute();
  await schema
    .createTable('login_streaks')
    .addColumn('subject', 'text', (column) => column.primaryKey().notNull())
    .addColumn('failures', 'integer', (column) => column.notNull())
    .addColumn('told_at', 'integer')
    .execute();
  await schema
    .createTable('operator_addresses')
    .addColumn('operator_id', 'text', (column) => column.notNull())
    .addColumn('address', 'text', (column) => column.notNull())
    .addColumn('last_login_at', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('operator_addresses_key', ['operator_id', 'address'])
    .execute();
  // Stores on PostgreSQL are newer than this migration, so they have no earlier logins.
  if (storeKindOf(db) === 'postgres') return;
  // Addresses of earlier logins must not count as new.
  await sql`
    insert into operator_addresses (operator_id, address, last_login_at)
    select target_id, json_extract(metadata_json, '$.address'), max(timestamp) from audit_events
    where event_type = 'operator.login' and json_extract(metadata_json, '$.address') is not null
    group by 1, 2
  `.execute(db);
}
