/** Migration 1: the initial tables. */
import { type Kysely, sql } from 'kysely';
import { type Migration, refuseUpdates } from './migration.js';

export const initial: Migration = {
  version: 1,
  async up(db) {
    await createMeta(db);
    await createOperators(db);
    await createSessions(db);
    await createAgents(db);
    await createModules(db);
    await createOperations(db);
    await createAppliedResources(db);
    await createDriftRecords(db);
    await createAuditEvents(db);
    await createIdempotencyKeys(db);
  },
};

type Schema = Kysely<unknown>;

async function createMeta({ schema }: Schema): Promise<void> {
  await schema
    .createTable('meta')
    .addColumn('key', 'text', (column) => column.primaryKey().notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .execute();
}

async function createOperators({ schema }: Schema): Promise<void> {
  await schema
    .createTable('operators')
    .addColumn('row_id', 'integer', (column) => column.primaryKey().autoIncrement().notNull())
    .addColumn('operator_id', 'text', (column) => column.notNull())
    .addColumn('public_key', 'text', (column) => column.notNull())
    .addColumn('username', 'text', (column) => column.notNull())
    .addColumn('role', 'text', (column) => column.notNull())
    .addColumn('bootstrap', 'integer', (column) => column.notNull())
    .addColumn('added_at', 'integer', (column) => column.notNull())
    .addColumn('added_by', 'text', (column) => column.notNull())
    .addColumn('removed_at', 'integer')
    .addColumn('removed_by', 'text')
    .execute();
  for (const column of ['operator_id', 'username']) {
    await schema
      .createIndex(`operators_active_${column}`)
      .unique()
      .on('operators')
      .column(column)
      .where('removed_at', 'is', null)
      .execute();
    await schema.createIndex(`operators_${column}`).on('operators').column(column).execute();
  }
}

async function createSessions({ schema }: Schema): Promise<void> {
  await schema
    .createTable('sessions')
    .addColumn('token_hash', 'text', (column) => column.primaryKey().notNull())
    .addColumn('operator_id', 'text', (column) => column.notNull())
    .addColumn('created_at', 'integer', (column) => column.notNull())
    .addColumn('expires_at', 'integer', (column) => column.notNull())
    .addColumn('last_used_at', 'integer', (column) => column.notNull())
    .addColumn('address', 'text', (column) => column.notNull())
    .execute();
  await schema.createIndex('sessions_operator').on('sessions').column('operator_id').execute();
  await schema.createIndex('sessions_expiry').on('sessions').column('expires_at').execute();
}

async function createAgents({ schema }: Schema): Promise<void> {
  await schema
    .createTable('agents')
    .addColumn('node_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('public_key', 'text', (column) => column.notNull())
    .addColumn('name', 'text')
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('created_at', 'integer', (column) => column.notNull())
    .addColumn('updated_at', 'integer', (column) => column.notNull())
    .addColumn('connected_at', 'integer', (column) => column.notNull())
    .addColumn('last_seen_at', 'integer', (column) => column.notNull())
    .addColumn('initial_hostname', 'text', (column) => column.notNull())
    .addColumn('initial_ip', 'text', (column) => column.notNull())
    .addColumn('agent_version', 'text', (column) => column.notNull())
    .addColumn('protocol_version', 'integer', (column) => column.notNull())
    .addColumn('attributes_json', 'text', (column) => column.notNull())
    .addColumn('state_operation_id', 'text')
    .execute();
  // Null names do not conflict with each other.
  await schema.createIndex('agents_name').unique().on('agents').column('name').execute();
  await schema.createIndex('agents_status').on('agents').columns(['status', 'connected_at']).execute();
  await schema
    .createTable('agent_tags')
    .addColumn('node_id', 'text', (column) => column.notNull().references('agents.node_id').onDelete('cascade'))
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('value', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('agent_tags_key', ['node_id', 'key'])
    .execute();
  await schema.createIndex('agent_tags_value').on('agent_tags').columns(['key', 'value']).execute();
}

async function createModules({ schema }: Schema): Promise<void> {
  await schema
    .createTable('modules')
    .addColumn('name', 'text', (column) => column.primaryKey().notNull())
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('uploaded_at', 'integer', (column) => column.notNull())
    .addColumn('uploaded_by', 'text', (column) => column.notNull())
    .execute();
  await schema
    .createTable('module_revisions')
    .addColumn('name', 'text', (column) => column.notNull().references('modules.name').onDelete('cascade'))
    .addColumn('revision', 'integer', (column) => column.notNull())
    .addColumn('sha256', 'text', (column) => column.notNull())
    .addColumn('content', 'text', (column) => column.notNull())
    .addColumn('definition_json', 'text', (column) => column.notNull())
    .addColumn('uploaded_at', 'integer', (column) => column.notNull())
    .addColumn('uploaded_by', 'text', (column) => column.notNull())
    .addPrimaryKeyConstraint('module_revisions_key', ['name', 'revision'])
    .execute();
}

/** Operations and drift records outlive their agent, so they have no foreign key to it. */
async function createOperations({ schema }: Schema): Promise<void> {
  await schema
    .createTable('operations')
    .addColumn('operation_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('node_name', 'text')
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('modules_json', 'text', (column) => column.notNull())
    .addColumn('assignments_json', 'text', (column) => column.notNull())
    .addColumn('requested_by', 'text', (column) => column.notNull())
    .addColumn('request_id', 'text', (column) => column.notNull())
    .addColumn('started_at', 'integer', (column) => column.notNull())
    .addColumn('finished_at', 'integer')
    .addColumn('epoch', 'integer', (column) => column.notNull())
    .addColumn('generation', 'integer', (column) => column.notNull())
    .addColumn('desired_json', 'text', (column) => column.notNull())
    .addColumn('removals_json', 'text', (column) => column.notNull())
    .addColumn('summary_json', 'text', (column) => column.notNull())
    .addColumn('error_json', 'text')
    .addColumn('accepted', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('cancelled_by_json', 'text')
    .execute();
  // Operation IDs are ULIDs, so they sort by time.
  await schema.createIndex('operations_node').on('operations').columns(['node_id', 'operation_id']).execute();
  await schema.createIndex('operations_state').on('operations').columns(['state', 'operation_id']).execute();
  await schema
    .createTable('operation_results')
    .addColumn('operation_id', 'text', (column) =>
      column.notNull().references('operations.operation_id').onDelete('cascade'),
    )
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('item_index', 'integer', (column) => column.notNull())
    .addColumn('result_json', 'text', (column) => column.notNull())
    .addColumn('existed', 'integer')
    .addPrimaryKeyConstraint('operation_results_key', ['operation_id', 'position'])
    .execute();
}

async function createAppliedResources({ schema }: Schema): Promise<void> {
  await schema
    .createTable('applied_resources')
    .addColumn('node_id', 'text', (column) => column.notNull().references('agents.node_id').onDelete('cascade'))
    .addColumn('family', 'text', (column) => column.notNull())
    .addColumn('identity_key', 'text', (column) => column.notNull())
    .addColumn('module', 'text', (column) => column.notNull())
    .addColumn('kind', 'text', (column) => column.notNull())
    .addColumn('identity', 'text', (column) => column.notNull())
    .addColumn('id', 'text')
    .addColumn('name', 'text')
    .addColumn('body_json', 'text', (column) => column.notNull())
    .addColumn('taint_json', 'text')
    .addColumn('origin', 'text', (column) => column.notNull())
    .addColumn('operation_id', 'text', (column) => column.notNull())
    .addColumn('applied_at', 'integer', (column) => column.notNull())
    .addColumn('position', 'integer', (column) => column.notNull())
    .addColumn('ad_hoc', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('applied_resources_key', ['node_id', 'family', 'identity_key'])
    .execute();
}

async function createDriftRecords({ schema }: Schema): Promise<void> {
  await schema
    .createTable('drift_records')
    .addColumn('drift_id', 'text', (column) => column.primaryKey().notNull())
    .addColumn('node_id', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('trigger', 'text', (column) => column.notNull())
    .addColumn('requested_by', 'text')
    .addColumn('operation_id', 'text', (column) => column.notNull())
    .addColumn('started_at', 'integer', (column) => column.notNull())
    .addColumn('finished_at', 'integer', (column) => column.notNull())
    .addColumn('has_changes', 'integer', (column) => column.notNull())
    .addColumn('summary_json', 'text', (column) => column.notNull())
    .addColumn('resources_json', 'text', (column) => column.notNull())
    .addColumn('error_json', 'text')
    .execute();
  await schema.createIndex('drift_records_node').on('drift_records').columns(['node_id', 'drift_id']).execute();
  await schema.createIndex('drift_records_status').on('drift_records').columns(['status', 'drift_id']).execute();
}

async function createAuditEvents(db: Schema): Promise<void> {
  const { schema } = db;
  await schema
    .createTable('audit_events')
    .addColumn('seq', 'integer', (column) => column.primaryKey().notNull())
    .addColumn('id', 'text', (column) => column.notNull().unique())
    .addColumn('event_type', 'text', (column) => column.notNull())
    .addColumn('severity', 'text', (column) => column.notNull())
    .addColumn('summary', 'text', (column) => column.notNull())
    .addColumn('timestamp', 'integer', (column) => column.notNull())
    .addColumn('actor_id', 'text', (column) => column.notNull())
    .addColumn('actor_name', 'text', (column) => column.notNull())
    .addColumn('actor_type', 'text', (column) => column.notNull())
    .addColumn('target_id', 'text', (column) => column.notNull())
    .addColumn('target_name', 'text', (column) => column.notNull())
    .addColumn('target_type', 'text', (column) => column.notNull())
    .addColumn('metadata_json', 'text', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull())
    .execute();
  // `seq` comes last in each, so that the newest matching events are read in order.
  const indexes = {
    type: ['event_type', 'seq'],
    time: ['timestamp', 'seq'],
    actor: ['actor_type', 'actor_id', 'event_type', 'seq'],
    target: ['target_type', 'target_id', 'event_type', 'seq'],
  };
  for (const [name, columns] of Object.entries(indexes)) {
    await schema.createIndex(`audit_events_${name}`).on('audit_events').columns(columns).execute();
  }
  // An agent is named by its approval, so these events show which agents had a name, including removed ones.
  await schema
    .createIndex('audit_events_agent_name')
    .on('audit_events')
    .column('target_name')
    .where(sql.ref('event_type'), '=', 'agent.approved')
    .execute();
  await refuseUpdates(db, 'audit_events');
}

async function createIdempotencyKeys({ schema }: Schema): Promise<void> {
  await schema
    .createTable('idempotency_keys')
    .addColumn('operator_id', 'text', (column) => column.notNull())
    .addColumn('key', 'text', (column) => column.notNull())
    .addColumn('route', 'text', (column) => column.notNull())
    .addColumn('request_hash', 'text', (column) => column.notNull())
    .addColumn('status', 'integer')
    .addColumn('body_json', 'text')
    .addColumn('created_at', 'integer', (column) => column.notNull())
    .addPrimaryKeyConstraint('idempotency_keys_key', ['operator_id', 'key'])
    .execute();
  await schema.createIndex('idempotency_keys_age').on('idempotency_keys').column('created_at').execute();
}
