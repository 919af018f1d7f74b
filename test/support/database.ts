import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monotonicFactory } from 'ulid';
import { onTestFinished } from 'vitest';
import type { OpenDatabase, OpenDatabaseOptions } from '../../daemon/database/database.js';
import type { Database, Queryable, Row } from '../../daemon/database/schema.js';
import { type Sqlite as LoadedSqlite, loadSqlite } from '../../daemon/database/sqlite/load-sqlite.js';
import { type StoreDriver, storeDriverOf } from '../../daemon/database/store-driver.js';
import type { NewOperationRow } from '../../daemon/engine/operations/operation-store.js';
import type { NewAgentRow } from '../../daemon/fleet/agent-store.js';
import type { Clock } from '../../src/kernel/clock.js';
import { type Fault, isFault } from '../../src/kernel/fault.js';
import { type LogFields, type Logger, silentLogger } from '../../src/kernel/logger.js';
import { type ResourceResult, summarize } from '../../src/resources/result.js';
import { openTestDatabase } from './store.js';

/** An empty directory that goes away with the test. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-store-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** A store in a file of its own, closed with the test. */
export async function openStore(options: Partial<OpenDatabaseOptions> = {}): Promise<OpenDatabase> {
  const store = await openTestDatabase({
    file: join(temporaryDirectory(), 'orch.db'),
    logger: silentLogger,
    clock: Date,
    onFatal: (error) => {
      throw error;
    },
    ...options,
  });
  onTestFinished(() => store.close());
  return store;
}

/** Time that stands still until the test moves it. */
export class ManualClock implements Clock {
  private wall: number;
  private steady = 1_000_000;

  constructor(wall = Date.parse('2026-03-01T12:00:00Z')) {
    this.wall = wall;
  }

  now(): number {
    return this.wall;
  }

  monotonic(): number {
    return this.steady;
  }

  advance(ms: number): void {
    this.wall += ms;
    this.steady += ms;
  }

  /** Sets the wall clock alone, as an administrator or NTP does. */
  setWall(wall: number): void {
    this.wall = wall;
  }
}

/** ULIDs of one process; of the given clock's time. */
export const newIds = (clock?: Clock) => {
  const next = monotonicFactory();
  return () => next(clock?.now());
};

/** Keeps what is logged. */
export function recordingLogger(): Logger & {
  readonly lines: { level: string; message: string; fields: LogFields }[];
} {
  const lines: { level: string; message: string; fields: LogFields }[] = [];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      void lines.push({ level, message, fields });
  const logger = {
    lines,
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => logger,
  };
  return logger;
}

/** The fault that a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<Fault> {
  try {
    await promise;
  } catch (error) {
    if (isFault(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

export const agentRow = (change: Partial<NewAgentRow> & { readonly node_id: string }): NewAgentRow => ({
  public_key: change.node_id.repeat(2),
  name: null,
  status: 'approved',
  created_at: 1000,
  updated_at: 1000,
  connected_at: 0,
  last_seen_at: 0,
  initial_hostname: 'host',
  initial_ip: '192.0.2.1',
  agent_version: '0.1.0',
  protocol_version: 1,
  attributes: {},
  state_operation_id: null,
  ...change,
});

/** Result of a resource that was found as desired. */
export const unchanged = (identity: string): ResourceResult => ({
  ...{ module: 'web', kind: 'file-unix', identity, id: null, name: null },
  ...{ action: 'none', status: 'unchanged', changes: [], diff: null, sensitive: false },
  ...{ reason: null, error: null, duration_ms: 1 },
});

export const operationRow = (
  change: Partial<NewOperationRow> & { readonly operation_id: string },
): NewOperationRow => ({
  node_id: 'a'.repeat(32),
  node_name: 'web-1',
  state: 'queued',
  modules: [],
  assignments: [],
  requested_by: 'system',
  request_id: 'r',
  started_at: 1000,
  finished_at: null,
  epoch: 1,
  generation: 1,
  summary: summarize([]),
  error: null,
  cancelled_by: null,
  ...change,
});

/** A node ID of one repeated digit. */
export const node = (digit: string): string => digit.repeat(32);

/** `schema.ts` once more as values; the compiler holds the two together. */
type Column<T> = null extends T
  ? NonNullable<T> extends string
    ? 'text?'
    : 'integer?' | 'real?'
  : T extends string
    ? 'text'
    : 'integer' | 'real';

/** SQLite's type of every column, with `?` where it may be null. */
export const SHAPE: { readonly [T in keyof Database]: { readonly [C in keyof Row<T>]: Column<Row<T>[C]> } } = {
  meta: { key: 'text', value: 'text' },
  operators: {
    row_id: 'integer',
    operator_id: 'text',
    public_key: 'text',
    username: 'text',
    role: 'text',
    bootstrap: 'integer',
    added_at: 'integer',
    added_by: 'text',
    removed_at: 'integer?',
    removed_by: 'text?',
    grants_json: 'text?',
    robot: 'integer',
    expires_at: 'integer?',
    expiry_told: 'integer',
    last_used_at: 'integer?',
  },
  operator_names: { operator_id: 'text', username: 'text' },
  sessions: {
    token_hash: 'text',
    operator_id: 'text',
    created_at: 'integer',
    expires_at: 'integer',
    last_used_at: 'integer',
    address: 'text',
  },
  agents: {
    node_id: 'text',
    public_key: 'text',
    name: 'text?',
    status: 'text',
    created_at: 'integer',
    created_id: 'text',
    updated_at: 'integer',
    connected_at: 'integer',
    last_seen_at: 'integer',
    initial_hostname: 'text',
    initial_ip: 'text',
    agent_version: 'text',
    protocol_version: 'integer',
    attributes_json: 'text',
    state_operation_id: 'text?',
    state_content_id: 'integer?',
    enrolment_token_id: 'text?',
    trial_operation_id: 'text?',
    ephemeral_secs: 'integer?',
  },
  agent_names: { name: 'text', node_id: 'text', lost_at: 'integer?' },
  enrolment_tokens: {
    token_id: 'text',
    secret_hash: 'text',
    created_at: 'integer',
    created_by: 'text',
    expires_at: 'integer',
    uses: 'integer',
    uses_left: 'integer',
    tags_json: 'text',
    auto_approve: 'integer',
    last_used_at: 'integer?',
    revoked_at: 'integer?',
    ephemeral_secs: 'integer?',
  },
  agent_upgrades: {
    node_id: 'text',
    upgrade_id: 'text',
    version: 'text',
    from_version: 'text',
    state: 'text',
    wait_secs: 'integer',
    waits_for: 'text?',
    error_json: 'text?',
    requested_by: 'text',
    requested_at: 'integer',
    updated_at: 'integer',
  },
  agent_facts: { node_id: 'text', facts_json: 'text', reported_at: 'integer' },
  agent_standings: {
    node_id: 'text',
    standing: 'text',
    since: 'integer',
    reason: 'text?',
    wanted_sha256: 'text?',
    counted_from: 'text',
    stopped_id: 'text?',
    stopped_at: 'integer?',
    stopped_code: 'text?',
    stopped_reason: 'text?',
  },
  agent_tags: { node_id: 'text', key: 'text', value: 'text' },
  modules: { name: 'text', revision: 'integer', uploaded_at: 'integer', uploaded_by: 'text' },
  module_revisions: {
    name: 'text',
    revision: 'integer',
    sha256: 'text',
    content: 'text',
    definition_json: 'text',
    uploaded_at: 'integer',
    uploaded_by: 'text',
  },
  module_texts: { sha256: 'text', content: 'text', definition_json: 'text' },
  module_files: { sha256: 'text', size: 'integer', received: 'integer', is_complete: 'integer', named_at: 'integer' },
  module_file_parts: { sha256: 'text', position: 'integer', data: 'text' },
  revision_files: { name: 'text', revision: 'integer', sha256: 'text' },
  text_files: { text_sha256: 'text', sha256: 'text' },
  content_files: { content_id: 'integer', sha256: 'text' },
  assignments: {
    name: 'text',
    modules_json: 'text',
    selector: 'text',
    description: 'text?',
    created_at: 'integer',
    created_by: 'text',
    mode: 'text',
    counted_from: 'text',
    stopped_id: 'text?',
    stopped_reason: 'text?',
    values_json: 'text?',
    scope_json: 'text?',
  },
  value_sets: {
    name: 'text',
    revision: 'integer',
    sha256: 'text',
    content: 'text',
    set_json: 'text',
    uploaded_at: 'integer',
    uploaded_by: 'text',
  },
  value_set_revisions: {
    name: 'text',
    revision: 'integer',
    sha256: 'text?',
    content: 'text?',
    uploaded_at: 'integer',
    uploaded_by: 'text',
  },
  one_off_values: { sha256: 'text', texts_json: 'text', read_json: 'text' },
  operations: {
    operation_id: 'text',
    node_id: 'text',
    node_name: 'text?',
    state: 'text',
    modules_json: 'text',
    assignments_json: 'text',
    requested_by: 'text',
    request_id: 'text',
    started_at: 'integer',
    finished_at: 'integer?',
    epoch: 'integer',
    generation: 'integer',
    summary_json: 'text',
    error_json: 'text?',
    accepted: 'integer',
    cancelled_by_json: 'text?',
    rollout_id: 'text?',
    content_id: 'integer?',
    expect: 'text?',
    checks_json: 'text?',
    restores: 'text?',
    confirm_secs: 'integer?',
    confirmed_at: 'integer?',
    keeps_snapshot: 'integer',
    puts_back: 'text?',
    restored_json: 'text?',
    value_inputs_json: 'text?',
    values_sha256: 'text?',
    facts_json: 'text?',
    may_purge: 'integer?',
    outside_window: 'integer',
  },
  rollouts: {
    rollout_id: 'text',
    state: 'text',
    reason: 'text?',
    assignment: 'text?',
    selector: 'text?',
    order_json: 'text',
    pace_json: 'text',
    counts_json: 'text',
    actor_json: 'text',
    requested_by: 'text',
    request_id: 'text',
    started_at: 'integer',
    finished_at: 'integer?',
    passed: 'integer',
    soaking_until: 'integer?',
    expires_at: 'integer?',
    value_inputs_json: 'text?',
    values_sha256: 'text?',
  },
  rollout_agents: {
    rollout_id: 'text',
    position: 'integer',
    node_id: 'text',
    name: 'text?',
    wave: 'integer',
    expect: 'text?',
    state: 'text',
    forgiven: 'integer',
    operation_id: 'text?',
    summary_json: 'text?',
    error_json: 'text?',
  },
  rollout_sources: {
    rollout_id: 'text',
    position: 'integer',
    name: 'text',
    sha256: 'text',
    replaces: 'text?',
  },
  operation_sources: {
    operation_id: 'text',
    name: 'text',
    sha256: 'text',
    replaces: 'text?',
    status: 'text',
    others: 'integer',
  },
  run_contents: { content_id: 'integer', sha256: 'text', content_json: 'text' },
  operation_results: {
    operation_id: 'text',
    position: 'integer',
    item_index: 'integer',
    result_json: 'text',
    existed: 'integer?',
    unchanged: 'integer?',
  },
  operation_outputs: {
    operation_id: 'text',
    position: 'integer',
    name: 'text',
    size: 'integer',
    output: 'text',
    key_id: 'text?',
  },
  applied_resources: {
    node_id: 'text',
    family: 'text',
    identity_key: 'text',
    module: 'text',
    kind: 'text',
    identity: 'text',
    id: 'text?',
    name: 'text?',
    body_json: 'text',
    taint_json: 'text?',
    origin: 'text',
    operation_id: 'text',
    applied_at: 'integer',
    position: 'integer',
    ad_hoc: 'integer',
    secrets_json: 'text?',
    listeners_json: 'text?',
  },
  secrets: {
    secret_id: 'text',
    name: 'text',
    sealed: 'text',
    key_id: 'text',
    row_version: 'integer',
    description: 'text?',
    expires_at: 'integer?',
    expiry_told: 'integer',
    restriction_json: 'text?',
    created_at: 'integer',
    created_by: 'text',
    updated_at: 'integer',
    updated_by: 'text',
  },
  drift_records: {
    drift_id: 'text',
    node_id: 'text',
    status: 'text',
    trigger: 'text',
    requested_by: 'text?',
    operation_id: 'text',
    started_at: 'integer',
    finished_at: 'integer',
    has_changes: 'integer',
    summary_json: 'text',
    resources_json: 'text',
    error_json: 'text?',
    content_id: 'integer?',
    snoozed: 'integer',
    accepted: 'integer',
  },
  drift_snoozes: {
    snooze_id: 'text',
    node_id: 'text',
    resources_json: 'text?',
    reason: 'text',
    created_at: 'integer',
    created_by: 'text',
    ends_at: 'integer',
  },
  drift_accepts: {
    node_id: 'text',
    family: 'text',
    identity_key: 'text',
    module: 'text',
    kind: 'text',
    identity: 'text',
    operation_id: 'text',
    observed: 'text',
    drift_id: 'text',
    reason: 'text?',
    accepted_at: 'integer',
    accepted_by: 'text',
  },
  audit_events: {
    seq: 'integer',
    id: 'text',
    event_type: 'text',
    severity: 'text',
    summary: 'text',
    timestamp: 'integer',
    actor_id: 'text',
    actor_name: 'text',
    actor_type: 'text',
    target_id: 'text',
    target_name: 'text',
    target_type: 'text',
    metadata_json: 'text',
    hash: 'text',
  },
  audit_marks: {
    kind: 'text',
    seq: 'integer',
    epoch: 'integer',
    hash: 'text',
    time: 'integer',
    public_key: 'text',
    signature: 'text',
  },
  idempotency_keys: {
    operator_id: 'text',
    key: 'text',
    route: 'text',
    request_hash: 'text',
    status: 'integer?',
    body_json: 'text?',
    created_at: 'integer',
  },
  metrics_samples: {
    node_id: 'text',
    received_at: 'integer',
    collected_at: 'integer',
    cpu_usage: 'real?',
    memory_used: 'integer?',
    memory_total: 'integer?',
    disk_used: 'integer?',
    disk_total: 'integer?',
    uptime: 'integer?',
  },
  channels: {
    channel_id: 'text',
    name: 'text',
    channel_type: 'text',
    sealed: 'text',
    key_id: 'text',
    row_version: 'integer',
    created_at: 'integer',
    created_by: 'text',
    disabled_at: 'integer?',
    failing: 'integer',
    attempted_at: 'integer?',
    attempt_status: 'integer?',
    attempt_error: 'text?',
    paused_until: 'integer?',
    events: 'text',
    min_severity: 'text',
  },
  notifications: {
    seq: 'integer',
    id: 'text',
    event_id: 'text',
    event_type: 'text',
    severity: 'text',
    summary: 'text',
    timestamp: 'integer',
    actor_json: 'text',
    target_json: 'text',
    metadata_json: 'text',
  },
  notification_reads: { operator_id: 'text', seq: 'integer' },
  notification_readers: { operator_id: 'text', read_to: 'integer' },
  deliveries: {
    channel_id: 'text',
    seq: 'integer',
    state: 'text',
    attempts: 'integer',
    next_at: 'integer?',
    status_code: 'integer?',
    error: 'text?',
    updated_at: 'integer',
  },
  agent_absences: {
    node_id: 'text',
    connected_at: 'integer?',
    away_since: 'integer?',
    event_json: 'text?',
    told_at: 'integer?',
  },
  agent_machines: {
    node_id: 'text',
    hostname: 'text',
    address: 'text',
    first_at: 'integer',
    last_at: 'integer',
    told_at: 'integer?',
    decision: 'text',
  },
  login_streaks: { subject: 'text', failures: 'integer', told_at: 'integer?' },
  operator_addresses: { operator_id: 'text', address: 'text', last_login_at: 'integer' },
  maintenance_windows: {
    window_id: 'text',
    reason: 'text',
    starts_at: 'integer',
    ends_at: 'integer',
    created_at: 'integer',
    created_by: 'text',
    told: 'text',
    kind: 'text',
    selector: 'text?',
    assignments_json: 'text',
  },
  terminal_sessions: {
    session_id: 'text',
    node_id: 'text',
    node_name: 'text?',
    operator_id: 'text',
    operator: 'text',
    kind: 'text',
    user: 'text?',
    shell: 'text?',
    command_json: 'text?',
    cols: 'integer',
    rows: 'integer',
    term: 'text',
    status: 'text',
    reason: 'text?',
    exit_code: 'integer?',
    exit_signal: 'text?',
    opened_at: 'integer',
    closed_at: 'integer?',
    recording: 'text',
    transcript: 'text?',
    transcript_sha256: 'text?',
    output_bytes: 'integer',
    resume_hash: 'text?',
    resume_operator_id: 'text?',
  },
};

/** The SQLite that the store is opened with on this Node, for tests that look into files or damage them. */
export const Sqlite: LoadedSqlite = await loadSqlite();

/**
 * Returns the store with prepared queries whose rows arrive after `open`. `read` resolves once the store has answered the
 * first of them, so that what changes after it is not in its rows.
 */
export function gated(db: Queryable): { readonly db: Queryable; readonly read: Promise<unknown>; open(): void } {
  const gate = new EventEmitter();
  const [read, opened] = [once(gate, 'read'), once(gate, 'open')];
  const driver = storeDriverOf(db);
  const store: Pick<StoreDriver, 'kind' | 'run'> = {
    kind: driver.kind,
    run: async (_, sql, parameters) => {
      const rows = await driver.run<never>(db, sql, parameters);
      gate.emit('read');
      await opened;
      return rows;
    },
  };
  const held: Queryable = Object.create(db, { getExecutor: { value: () => ({ adapter: { store } }) } });
  return { db: held, read, open: () => gate.emit('open') };
}
