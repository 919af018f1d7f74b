/**
 * Types of the store's tables. Times are Unix milliseconds, flags are 0 or 1. `*_json` columns hold
 * JSON text that only the store of the table decodes and encodes: `json-columns.ts`.
 */
import type { Generated, Insertable, Kysely, Selectable } from 'kysely';
import type { Standing } from '../../src/contract/standing-names.js';
import type { AssignmentMode } from '../../src/kernel/assignment-modes.js';

interface MetaTable {
  key: string;
  value: string;
}

/** One row per operator ID. Removal is soft: the row stays, with `removed_at` set. */
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
  /** JSON of the grants; null for an operator whom none limit. */
  grants_json: string | null;
  /** 1 for a program, which gets no terminal. */
  robot: Generated<number>;
  /** Unix milliseconds from which the operator may do nothing; null for one without an end. */
  expires_at: number | null;
  /** What was told of the end: 0 nothing, 1 that it comes soon, 2 that it came. */
  expiry_told: Generated<number>;
  /** Unix milliseconds, with a precision of a minute; null for a robot that was never used, and for people. */
  last_used_at: number | null;
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
  /** Unix milliseconds by the wall clock of that moment. */
  created_at: number;
  /** ID issued with this record. Operations and drift records with lower IDs belong to an agent that was removed. */
  created_id: Generated<string>;
  updated_at: number;
  /** Start of the last connection; 0 for none. */
  connected_at: number;
  last_seen_at: number;
  initial_hostname: string;
  initial_ip: string;
  agent_version: string;
  protocol_version: number;
  attributes_json: string;
  /** Apply that the believed state reflects; null before the first. */
  state_operation_id: string | null;
  /** Content whose resources are exactly the believed state; null when it may differ from every content. */
  state_content_id: number | null;
  /** Token with which the agent enrolled; null for none. */
  enrolment_token_id: string | null;
  /** Apply that began the trial of the agent; a trial without a source in status `on_trial` has ended. Null for none. */
  trial_operation_id: string | null;
  /** Seconds without a connection after which it is removed; null for never. */
  ephemeral_secs: number | null;
}

/** What an agent reports beside its attributes: `fleet/fact-store.ts`. */
interface AgentFactTable {
  node_id: string;
  facts_json: string;
  /** Unix milliseconds of the last report. */
  reported_at: number;
}

/** The standing of an approved agent, as last evaluated: `engine/convergence/standings.ts`. */
interface AgentStandingTable {
  node_id: string;
  standing: Standing;
  /** Time at which the standing began. */
  since: number;
  /** The differences, or why the modules cannot be resolved; null without any. */
  reason: string | null;
  /** Hash of the content that an apply would send, without removals; null if the modules cannot be resolved. */
  wanted_sha256: string | null;
  /** ULID of the last change of that content: automatic applies with lower IDs no longer count. */
  counted_from: string;
  /** ULID of the moment at which the agent's automatic applies stopped, and its time; null while they go on. */
  stopped_id: string | null;
  stopped_at: number | null;
  stopped_code: string | null;
  stopped_reason: string | null;
}

/** The last upgrade of an agent. */
interface AgentUpgradeTable {
  node_id: string;
  upgrade_id: string;
  version: string;
  /** Version of the agent at the request. */
  from_version: string;
  state: string;
  /** Seconds for which the agent waits for applies and terminals. */
  wait_secs: number;
  waits_for: string | null;
  error_json: string | null;
  /** Operator ID. */
  requested_by: string;
  requested_at: number;
  updated_at: number;
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
  /** Seconds without a connection after which its agents are removed; null for never. */
  ephemeral_secs: number | null;
}

/** Names that agents have or had. */
interface AgentNameTable {
  name: string;
  node_id: string;
  /** Unix milliseconds at which the agent lost the name; null while it has it, or if that was not noted. */
  lost_at: number | null;
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

/** A document of values for inputs of modules. */
interface ValueSetTable {
  name: string;
  revision: number;
  /** SHA-256 of `content`, in hex. */
  sha256: string;
  content: string;
  /** The content as data. */
  set_json: string;
  uploaded_at: number;
  uploaded_by: string;
}

/** A revision of a value set, kept also after the set was removed. */
interface ValueSetRevisionTable {
  name: string;
  revision: number;
  /** SHA-256 of `content`, in hex; null for the removal of the set. */
  sha256: string | null;
  content: string | null;
  uploaded_at: number;
  uploaded_by: string;
}

/** Values that applies and rollouts bring with them, stored once by their hash as long as one refers to them. */
interface OneOffValuesTable {
  sha256: string;
  /** As they were given. */
  texts_json: string;
  /** As they were read. */
  read_json: string;
}

/** Text of a module that an apply or a rollout carries, stored until all that carry it have published it or are deleted. */
interface ModuleTextTable {
  /** SHA-256 of `content` and of the list of the files beside the module, in hex. */
  sha256: string;
  content: string;
  definition_json: string;
}

/** A file beside a module. It is deleted a while after the last module text or content that names it. */
interface ModuleFileTable {
  /** SHA-256 of the file, in hex. */
  sha256: string;
  size: number;
  /** Bytes of the stored parts. */
  received: number;
  /** 1 once all parts are stored and have the SHA-256. */
  is_complete: number;
  /** Time of the last upload that named it. */
  named_at: number;
}

/** A part of a file: `FILE_PART_BYTES` of it, fewer in the last one. */
interface ModuleFilePartTable {
  sha256: string;
  /** From 0. */
  position: number;
  /** Base64. */
  data: string;
}

/** A file that a revision of a module names. */
interface RevisionFileTable {
  name: string;
  revision: number;
  sha256: string;
}

/** A file that a module carried as text names. */
interface TextFileTable {
  text_sha256: string;
  sha256: string;
}

/** A file that the content of an apply takes. */
interface ContentFileTable {
  content_id: number;
  sha256: string;
}

/** A module that an apply carries as text. */
interface OperationSourceTable {
  operation_id: string;
  name: string;
  sha256: string;
  /** SHA-256 of the revision that the text replaces when it is published; null for none. */
  replaces: string | null;
  /** One of `SOURCE_STATUSES`: `engine/modules/source-store.ts`. */
  status: string;
  /** Number of other agents that followed the module at the end of the apply. */
  others: number;
}

/** A module that a rollout carries as text. */
interface RolloutSourceTable {
  rollout_id: string;
  /** Position in the request, from 0. */
  position: number;
  name: string;
  sha256: string;
  /** As in `OperationSourceTable`. */
  replaces: string | null;
}

export interface AssignmentTable {
  name: string;
  modules_json: string;
  selector: string;
  description: string | null;
  created_at: number;
  created_by: string;
  mode: Generated<AssignmentMode>;
  /** ULID of its last change or resumption: failures of operations with lower IDs no longer count. */
  counted_from: Generated<string>;
  /** ULID of the moment at which its automatic applies stopped; null if they never did. */
  stopped_id: string | null;
  stopped_reason: string | null;
  /** Values of inputs by module; null for none. */
  values_json: string | null;
  /** JSON of the selectors of machines, one of which must match as well; null for all machines. */
  scope_json: string | null;
}

export interface OperationTable {
  operation_id: string;
  node_id: string;
  node_name: string | null;
  /**
   * State of `engine/operations/operation-state.ts`: queued, dispatched, running, recovering, succeeded, failed,
   * interrupted, cancelled, rolled_back.
   */
  state: string;
  modules_json: string;
  assignments_json: string;
  requested_by: string;
  request_id: string;
  started_at: number;
  finished_at: number | null;
  epoch: number;
  generation: number;
  summary_json: string;
  error_json: string | null;
  /** 1 once the agent is known to have the run in its journal. */
  accepted: Generated<number>;
  /** Party that cancelled it; null for none. */
  cancelled_by_json: string | null;
  /** ULID of its rollout. */
  rollout_id: string | null;
  /** Its content, as dispatched. */
  content_id: number | null;
  /** Hash of the observation that the machine must still match; null without a plan. */
  expect: string | null;
  /** Results of its health checks, as the agent reported them; null for none. */
  checks_json: string | null;
  /** Earlier operation whose desired state it applies, or `nothing`; null for an apply of modules. */
  restores: string | null;
  /** Seconds in which the agent has to come back; null without a confirmation. */
  confirm_secs: number | null;
  /** Unix milliseconds at which the agent came back; null before. */
  confirmed_at: number | null;
  /** 1 if the agent keeps what the apply replaced. */
  keeps_snapshot: Generated<number>;
  /** Operation whose kept snapshot the agent restores first; null for none. */
  puts_back: string | null;
  /** The agent's report of a restore; null without one. */
  restored_json: string | null;
  /** Inputs that its one-off values set, such as `nginx.workers`; null for none. */
  value_inputs_json: string | null;
  /** Its one-off values; null for none. */
  values_sha256: string | null;
  /** Reported facts on which its content depended; null for an earlier desired state, and before there were any. */
  facts_json: string | null;
  /** Maximum entries that its purges may delete together; null without purges, and for the agent's default. */
  may_purge: number | null;
  /** 1 if it may begin outside the maintenance windows of its assignments. */
  outside_window: Generated<number>;
}

export interface RolloutTable {
  rollout_id: string;
  /** One of `ROLLOUT_STATES` of the contract. */
  state: string;
  /** Why it is paused, halted, failed or cancelled. */
  reason: string | null;
  assignment: string | null;
  selector: string | null;
  order_json: string;
  pace_json: string;
  /** Number of agents in each state; current once it has ended. */
  counts_json: string;
  /** Party on whose behalf agents are applied: the operator who began or last resumed it. */
  actor_json: string;
  /** Operator who began it. */
  requested_by: string;
  request_id: string;
  started_at: number;
  finished_at: number | null;
  /** Number of waves that are over. */
  passed: number;
  /** End of the soak of the current wave; null before it begins. */
  soaking_until: number | null;
  /** Time until which offline agents are waited for; null when they are not. */
  expires_at: number | null;
  /** Inputs that its one-off values set, such as `nginx.workers`; null for none. */
  value_inputs_json: string | null;
  /** Its one-off values; null for none. */
  values_sha256: string | null;
}

/** An agent of a rollout. */
export interface RolloutAgentTable {
  rollout_id: string;
  /** Position in the rollout, from 0. */
  position: number;
  node_id: string;
  /** Its name when the rollout began. */
  name: string | null;
  /** Number of its wave, from 1. */
  wave: number;
  /** `plan_hash` that its apply must match; null without a plan. */
  expect: string | null;
  /** One of `ROLLOUT_AGENT_STATES` of the contract. */
  state: string;
  /** 1 when its failure no longer counts against the bounds. */
  forgiven: number;
  /** Its newest apply in this rollout; null before the first. */
  operation_id: string | null;
  summary_json: string | null;
  error_json: string | null;
}

/** Content of runs, shared by all that have the same one. */
interface RunContentTable {
  content_id: Generated<number>;
  /** SHA-256 of `content_json`, in hex. */
  sha256: string;
  /** Resources and removals with secrets masked, and what belongs to them: `engine/runs/run-contents.ts`. */
  content_json: string;
}

interface OperationResultTable {
  operation_id: string;
  /** Position in the sequence of results, from 0 without gaps. */
  position: number;
  /** Position in the run: desired resources, then removals. */
  item_index: number;
  /** The result; `{"duration_ms":…}` for unchanged resources. */
  result_json: string;
  existed: number | null;
  /** Number of consecutive unchanged resources, from `item_index` on, that the row stands for; null for one result. */
  unchanged: number | null;
}

/** Output of a script. */
interface OperationOutputTable {
  operation_id: string;
  /** Position of its result. */
  position: number;
  /** `module/identity` of the script. */
  name: string;
  /** Bytes of the JSON text before sealing. */
  size: number;
  /** JSON, sealed when there is a `key_id`: `secrets/ciphers.ts`. */
  output: string;
  /** ID of the sealing key; null when it is not sealed. */
  key_id: string | null;
}

/** The believed state: each managed resource as last applied successfully. Drift checks compare against it. */
interface AppliedResourceTable {
  node_id: string;
  family: string;
  /** Unique per node and family; for scripts it begins with their module. */
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
  /** Position in the order of application. */
  position: number;
  /** 1 when its module was only named in a request and by no assignment. */
  ad_hoc: number;
  /** Names of the secrets in it, each with a keyed hash of its value; null when it holds none. */
  secrets_json: string | null;
  /** Resources that react when it goes; null for none. */
  listeners_json: string | null;
}

export interface SecretTable {
  secret_id: string;
  name: string;
  /** Value under authenticated encryption: `secrets/keyring.ts`. */
  sealed: string;
  /** ID of the sealing key. */
  key_id: string;
  /** Incremented by each change; the sealed value is bound to this version. */
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
  /** Results; with a `content_id`, those of unchanged resources in short. */
  resources_json: string;
  error_json: string | null;
  /** Content whose resources were compared; null when the results are not in short. */
  content_id: number | null;
  /** Number of resources whose drift was snoozed. */
  snoozed: Generated<number>;
  /** Number of resources whose drift was accepted. */
  accepted: Generated<number>;
}

/** Times in which drift of some resources does not count. */
interface DriftSnoozeTable {
  snooze_id: string;
  node_id: string;
  /** Addresses of the resources; null for all of the agent. */
  resources_json: string | null;
  reason: string;
  created_at: number;
  /** Operator ID. */
  created_by: string;
  ends_at: number;
}

/** Resources whose drift does not count while the machine stays as it was then. */
interface DriftAcceptTable {
  node_id: string;
  family: string;
  identity_key: string;
  module: string;
  kind: string;
  identity: string;
  /** Apply that the believed state reflected; it counts until another apply changes that. */
  operation_id: string;
  /** Hash of what the agent observed of the resource. */
  observed: string;
  /** Record with the accepted drift. */
  drift_id: string;
  reason: string | null;
  accepted_at: number;
  /** Operator ID. */
  accepted_by: string;
}

/** Append-only hash chain. */
interface AuditTable {
  /** Sequence number, from 1 without gaps. */
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
  /** SHA-256 over the previous hash and the canonical JSON of this event, in hex. */
  hash: string;
}

/** Signed marks in the hash chain. */
interface AuditMarkTable {
  /** `checkpoint`, or `cut` for the last event that was pruned: `audit/checkpoint.ts`. */
  kind: string;
  seq: number;
  /** Epoch of the store. */
  epoch: number;
  /** Hash of the event with that `seq`. */
  hash: string;
  /** Time of the signature. */
  time: number;
  /** Public key that verifies the signature, in hex. */
  public_key: string;
  signature: string;
}

interface IdempotencyTable {
  operator_id: string;
  key: string;
  route: string;
  /** Keyed hash (HMAC-SHA256) of the request's parameters and body. */
  request_hash: string;
  /** HTTP status; null while the first request is in flight. */
  status: number | null;
  body_json: string | null;
  created_at: number;
}

interface MetricsTable {
  node_id: string;
  /** Unix milliseconds by the orchestrator's clock. */
  received_at: number;
  /** Unix seconds by the agent's clock. */
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
  /** Configuration as JSON under authenticated encryption: `secrets/ciphers.ts`. */
  sealed: string;
  /** ID of the sealing key. */
  key_id: string;
  /** Incremented by each change of the configuration; the sealed value is bound to this version. */
  row_version: number;
  created_at: number;
  created_by: string;
  /** Time since which nothing is sent to it, because its address is gone. */
  disabled_at: number | null;
  /** 1 from a delivery that failed permanently until one succeeds. */
  failing: number;
  /** Time of the last attempt; `attempt_error` is null when it succeeded. */
  attempted_at: number | null;
  attempt_status: number | null;
  attempt_error: string | null;
  /** Time until which nothing is sent to it, because its receiver asked for a pause; null for none. */
  paused_until: number | null;
  /** Patterns of the events that it receives, separated by blanks; empty for all. */
  events: Generated<string>;
  /** Least severity of the events that it receives. */
  min_severity: Generated<string>;
}

export interface NotificationTable {
  /** Sequence number in the order raised. */
  seq: Generated<number>;
  id: string;
  event_id: string;
  event_type: string;
  severity: string;
  /** Sanitised to one short line. */
  summary: string;
  timestamp: number;
  actor_json: string;
  target_json: string;
  /** IDs and counts only. */
  metadata_json: string;
}

/** Read marks of single notifications above the operator's `read_to`. */
interface NotificationReadTable {
  operator_id: string;
  seq: number;
}

interface NotificationReaderTable {
  operator_id: string;
  /** Highest `seq` up to which everything is read. */
  read_to: number;
}

/** The outbox of deliveries, and afterwards their log. */
export interface DeliveryTable {
  channel_id: string;
  /** Sequence number of the notification. */
  seq: number;
  /** State: pending, delivered, failed or suppressed. */
  state: string;
  attempts: number;
  /** Time of the next attempt; null once it is no longer pending. */
  next_at: number | null;
  status_code: number | null;
  error: string | null;
  updated_at: number;
}

/** Agents that are connected, or whose absence was not reported yet. */
interface AgentAbsenceTable {
  node_id: string;
  /** Start of the connection; null while the agent is away. */
  connected_at: number | null;
  /** Start of the absence. While the agent is connected: of the absence whose end was not reported yet, or null. */
  away_since: number | null;
  /** Time at which the absence was reported; null before. */
  told_at: number | null;
  /** Event of the disconnect. */
  event_json: string | null;
}

/** Machines that were seen with the key of an agent while another machine had it too. */
interface AgentMachineTable {
  node_id: string;
  hostname: string;
  address: string;
  first_at: number;
  last_at: number;
  /** Time of the last event about it; null for none. */
  told_at: number | null;
  /** `open`, or whether an operator has it turned away by its `hostname`, or by its host name and `address`. */
  decision: string;
}

interface LoginStreakTable {
  /** ID of the party whose logins fail. */
  subject: string;
  /** Failures since the last success or report. */
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
  /** State of the window in the audit log. */
  told: 'nothing' | 'started' | 'ended';
  kind: Generated<'pause' | 'permit'>;
  /** Agents that a pause is limited to; null for all. */
  selector: string | null;
  /** Names of the assignments that a permit lets through. */
  assignments_json: Generated<string>;
}

export interface TerminalSessionTable {
  session_id: string;
  node_id: string;
  node_name: string | null;
  /** Operator that opened the session. */
  operator_id: string;
  operator: string;
  kind: 'shell' | 'exec';
  /** User account on the agent's machine. */
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
  /** Path relative to the data directory. */
  transcript: string | null;
  transcript_sha256: string | null;
  /** Total bytes at its end; 0 while it is active. */
  output_bytes: number;
  /** Hash of the secret that lets the current writer resume, and the ID of that operator. */
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
  agent_names: AgentNameTable;
  agent_upgrades: AgentUpgradeTable;
  agent_facts: AgentFactTable;
  agent_standings: AgentStandingTable;
  enrolment_tokens: EnrolmentTokenTable;
  modules: ModuleTable;
  module_revisions: ModuleRevisionTable;
  module_texts: ModuleTextTable;
  module_files: ModuleFileTable;
  module_file_parts: ModuleFilePartTable;
  revision_files: RevisionFileTable;
  text_files: TextFileTable;
  content_files: ContentFileTable;
  value_sets: ValueSetTable;
  value_set_revisions: ValueSetRevisionTable;
  one_off_values: OneOffValuesTable;
  assignments: AssignmentTable;
  operations: OperationTable;
  operation_results: OperationResultTable;
  operation_sources: OperationSourceTable;
  rollouts: RolloutTable;
  rollout_agents: RolloutAgentTable;
  rollout_sources: RolloutSourceTable;
  run_contents: RunContentTable;
  operation_outputs: OperationOutputTable;
  applied_resources: AppliedResourceTable;
  secrets: SecretTable;
  drift_records: DriftTable;
  drift_snoozes: DriftSnoozeTable;
  drift_accepts: DriftAcceptTable;
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
  agent_machines: AgentMachineTable;
  login_streaks: LoginStreakTable;
  operator_addresses: OperatorAddressTable;
  maintenance_windows: MaintenanceWindowTable;
  terminal_sessions: TerminalSessionTable;
}

export type Row<T extends keyof Database> = Selectable<Database[T]>;
export type NewRow<T extends keyof Database> = Insertable<Database[T]>;

/** Target of queries: the database, or the transaction of a unit of work (which is a Kysely too). */
export type Queryable = Kysely<Database>;
