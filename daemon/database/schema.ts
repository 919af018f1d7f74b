/** The tables of the store as types. Times are Unix milliseconds, `*_json` columns hold JSON text, flags are 0 or 1. */
import type { Generated, Insertable, Kysely, Selectable } from 'kysely';

interface MetaTable {
  key: string;
  value: string;
}

/** Removal is soft, so a key may stand here several times, at most once without `removed_at`. */
interface OperatorTable {
  row_id: Generated<number>;
  operator_id: string;
  public_key: string;
  username: string;
  role: string;
  bootstrap: number;
  added_at: number;
  added_by: string;
  removed_at: number | null;
  removed_by: string | null;
}

/** Every name that an operator ID has or had. */
interface OperatorNameTable {
  operator_id: string;
  username: string;
}

interface SessionTable {
  /** SHA-256 over a domain prefix and the token. */
  token_hash: string;
  operator_id: string;
  created_at: number;
  expires_at: number;
  last_used_at: number;
  address: string;
}

export interface AgentTable {
  node_id: string;
  public_key: string;
  name: string | null;
  status: string;
  /** Unix milliseconds, by the clock of that moment. */
  created_at: number;
  /** An id made with this record. Operations and drift records with lower ids belong to an agent that was removed. */
  created_id: Generated<string>;
  updated_at: number;
  /** Start of the last connection, 0 when never. */
  connected_at: number;
  last_seen_at: number;
  initial_hostname: string;
  initial_ip: string;
  agent_version: string;
  protocol_version: number;
  attributes_json: string;
  /** The apply that the believed state stands for, null before the first. */
  state_operation_id: string | null;
  /** The token that has vouched for it; null when none has. */
  enrolment_token_id: string | null;
}

interface EnrolmentTokenTable {
  token_id: string;
  /** SHA-256 over a domain prefix and the secret. */
  secret_hash: string;
  created_at: number;
  created_by: string;
  expires_at: number;
  uses: number;
  uses_left: number;
  tags_json: string;
  auto_approve: number;
  last_used_at: number | null;
  revoked_at: number | null;
}

interface AgentTagTable {
  node_id: string;
  key: string;
  value: string;
}

interface ModuleTable {
  name: string;
  revision: number;
  uploaded_at: number;
  uploaded_by: string;
}

interface ModuleRevisionTable {
  name: string;
  revision: number;
  sha256: string;
  content: string;
  definition_json: string;
  uploaded_at: number;
  uploaded_by: string;
}

export interface AssignmentTable {
  name: string;
  modules_json: string;
  selector: string;
  description: string | null;
  created_at: number;
  created_by: string;
}

export interface OperationTable {
  operation_id: string;
  node_id: string;
  node_name: string | null;
  /** queued, dispatched, running, recovering, succeeded, failed, interrupted, cancelled: `engine/operation-state.ts`. */
  state: string;
  modules_json: string;
  assignments_json: string;
  requested_by: string;
  request_id: string;
  started_at: number;
  finished_at: number | null;
  epoch: number;
  generation: number;
  /** The desired set and the removals as they were dispatched, secrets masked. */
  desired_json: string;
  removals_json: string;
  summary_json: string;
  error_json: string | null;
  /** 1 once the agent is known to have the run in its journal. */
  accepted: Generated<number>;
  /** The party that asked to cancel it, null when nobody has. */
  cancelled_by_json: string | null;
  /** ULID of the rollout that it is part of. */
  rollout_id: string | null;
}

interface OperationResultTable {
  operation_id: string;
  /** Position in the sequence of results, from 0 without gaps. */
  position: number;
  /** Position in the run: desired resources, then removals. */
  item_index: number;
  result_json: string;
  existed: number | null;
}

/** What a script wrote. */
interface OperationOutputTable {
  operation_id: string;
  /** Of the result that it belongs to. */
  position: number;
  /** `module/identity`. */
  name: string;
  /** Bytes of the JSON text before it was sealed. */
  size: number;
  /** JSON; sealed when there is a `key_id`: `secrets/output-vault.ts`. */
  output: string;
  /** Of the key that has sealed it; null when it is not sealed. */
  key_id: string | null;
}

/** The believed state: each managed resource as it was last applied with success. Drift compares with it. */
interface AppliedResourceTable {
  node_id: string;
  family: string;
  /** Unique with node and family; scripts carry their module in front. */
  identity_key: string;
  module: string;
  kind: string;
  identity: string;
  id: string | null;
  name: string | null;
  body_json: string;
  taint_json: string | null;
  origin: string;
  operation_id: string;
  applied_at: number;
  /** Order of application. */
  position: number;
  /** 1 when its module was only named in a request, by no assignment. */
  ad_hoc: number;
  /** The secrets in it by name, each with a keyed hash of the value; null when it holds none. */
  secrets_json: string | null;
}

export interface SecretTable {
  secret_id: string;
  name: string;
  /** The value under authenticated encryption: `secrets/seal.ts`. */
  sealed: string;
  /** Of the key that has sealed it. */
  key_id: string;
  /** Grows with each change; the sealed value belongs to this version alone. */
  row_version: number;
  description: string | null;
  expires_at: number | null;
  /** 1 once its expiry is in the audit log. */
  expiry_told: number;
  restriction_json: string | null;
  created_at: number;
  created_by: string;
  updated_at: number;
  updated_by: string;
}

export interface DriftTable {
  drift_id: string;
  node_id: string;
  status: string;
  trigger: string;
  requested_by: string | null;
  operation_id: string;
  started_at: number;
  finished_at: number;
  has_changes: number;
  summary_json: string;
  resources_json: string;
  error_json: string | null;
}

/** Append-only hash chain. */
interface AuditTable {
  /** Without gaps, from 1. */
  seq: number;
  id: string;
  event_type: string;
  severity: string;
  summary: string;
  timestamp: number;
  actor_id: string;
  actor_name: string;
  actor_type: string;
  target_id: string;
  target_name: string;
  target_type: string;
  metadata_json: string;
  /** SHA-256 over the hash before and the canonical JSON of this event, hex. */
  hash: string;
}

/** Signed places in the hash chain. */
interface AuditMarkTable {
  /** `checkpoint`, or `cut` for the last event that was pruned: `events/checkpoint.ts`. */
  kind: string;
  seq: number;
  /** Of the store. */
  epoch: number;
  /** Of the event of that `seq`. */
  hash: string;
  /** When it was signed. */
  time: number;
  /** That checks the signature, hex. */
  public_key: string;
  signature: string;
}

interface IdempotencyTable {
  operator_id: string;
  key: string;
  route: string;
  /** SHA-256 of the request's parameters and body. */
  request_hash: string;
  /** null while the first request is under way. */
  status: number | null;
  body_json: string | null;
  created_at: number;
}

interface MetricsTable {
  node_id: string;
  /** By the clock of the orchestrator, in ms. */
  received_at: number;
  /** By the clock of the agent, in seconds. */
  collected_at: number;
  cpu_usage: number | null;
  memory_used: number | null;
  memory_total: number | null;
  disk_used: number | null;
  disk_total: number | null;
  uptime: number | null;
}

export interface ChannelTable {
  channel_id: string;
  name: string;
  channel_type: string;
  /** The configuration as JSON under authenticated encryption: `secrets/channel-vault.ts`. */
  sealed: string;
  /** Of the key that has sealed it. */
  key_id: string;
  /** Grows with each change of the configuration; the sealed one belongs to this version alone. */
  row_version: number;
  created_at: number;
  created_by: string;
  /** Since when nothing is sent to it, because its address is gone. */
  disabled_at: number | null;
  /** 1 since a delivery failed for good, until one succeeds. */
  failing: number;
  /** The last attempt; `attempt_error` is null when it was a success. */
  attempted_at: number | null;
  attempt_status: number | null;
  attempt_error: string | null;
}

export interface NotificationTable {
  /** In the order they were raised. */
  seq: Generated<number>;
  id: string;
  event_id: string;
  event_type: string;
  severity: string;
  /** Harmless on one line, and short. */
  summary: string;
  timestamp: number;
  actor_json: string;
  target_json: string;
  /** IDs and counts only. */
  metadata_json: string;
}

/** Marks of single notifications above what the operator has read as a whole. */
interface NotificationReadTable {
  operator_id: string;
  seq: number;
}

interface NotificationReaderTable {
  operator_id: string;
  /** Everything up to this `seq` is read. */
  read_to: number;
}

/** The outbox, and afterwards the log of it. */
export interface DeliveryTable {
  channel_id: string;
  /** Of the notification. */
  seq: number;
  /** pending, delivered, failed, suppressed. */
  state: string;
  attempts: number;
  /** Null once it is not pending any more. */
  next_at: number | null;
  status_code: number | null;
  error: string | null;
  updated_at: number;
}

/** Agents that are connected, or have gone and were not told of yet. */
interface AgentAbsenceTable {
  node_id: string;
  /** null while it is away. */
  connected_at: number | null;
  /** null while it is connected. */
  away_since: number | null;
  /** The event of its going. */
  event_json: string | null;
}

interface LoginStreakTable {
  /** ID of the party whose logins fail. */
  subject: string;
  /** Since its last success, or since it was told of. */
  failures: number;
  told_at: number | null;
}

interface OperatorAddressTable {
  operator_id: string;
  address: string;
  last_login_at: number;
}

export interface MaintenanceWindowTable {
  window_id: string;
  reason: string;
  starts_at: number;
  ends_at: number;
  created_at: number;
  created_by: string;
  /** What the audit log was told of it last. */
  told: 'nothing' | 'started' | 'ended';
}

export interface TerminalSessionTable {
  session_id: string;
  node_id: string;
  node_name: string | null;
  /** Who opened it. */
  operator_id: string;
  operator: string;
  kind: 'shell' | 'exec';
  /** The user of the machine. */
  user: string | null;
  shell: string | null;
  command_json: string | null;
  cols: number;
  rows: number;
  term: string;
  status: 'active' | 'closed' | 'interrupted';
  reason: string | null;
  exit_code: number | null;
  exit_signal: string | null;
  opened_at: number;
  closed_at: number | null;
  recording: 'off' | 'on' | 'complete' | 'truncated' | 'failed' | 'pruned';
  /** Relative to the data directory. */
  transcript: string | null;
  transcript_sha256: string | null;
  /** As of its end; 0 while it is active. */
  output_bytes: number;
  /** Of the secret with which the one who writes comes back, and whose it is. */
  resume_hash: string | null;
  resume_operator_id: string | null;
}

export interface Database {
  meta: MetaTable;
  operators: OperatorTable;
  operator_names: OperatorNameTable;
  sessions: SessionTable;
  agents: AgentTable;
  agent_tags: AgentTagTable;
  enrolment_tokens: EnrolmentTokenTable;
  modules: ModuleTable;
  module_revisions: ModuleRevisionTable;
  assignments: AssignmentTable;
  operations: OperationTable;
  operation_results: OperationResultTable;
  operation_outputs: OperationOutputTable;
  applied_resources: AppliedResourceTable;
  secrets: SecretTable;
  drift_records: DriftTable;
  audit_events: AuditTable;
  audit_marks: AuditMarkTable;
  idempotency_keys: IdempotencyTable;
  metrics_samples: MetricsTable;
  channels: ChannelTable;
  notifications: NotificationTable;
  notification_reads: NotificationReadTable;
  notification_readers: NotificationReaderTable;
  deliveries: DeliveryTable;
  agent_absences: AgentAbsenceTable;
  login_streaks: LoginStreakTable;
  operator_addresses: OperatorAddressTable;
  maintenance_windows: MaintenanceWindowTable;
  terminal_sessions: TerminalSessionTable;
}

export type Row<T extends keyof Database> = Selectable<Database[T]>;
export type NewRow<T extends keyof Database> = Insertable<Database[T]>;

/** What queries run on: the database itself, or the transaction of a unit of work (which is a Kysely too). */
export type Queryable = Kysely<Database>;
