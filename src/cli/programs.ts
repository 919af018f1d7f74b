/** The programs that the command line starts: `bin` passes them in as functions. */
import type { FaultCode } from '../kernel/fault.js';
import type { CheckReport, DesiredCheck } from '../resources/checks/check.js';
import type { DesiredResource, Removal } from '../resources/desired.js';
import type { Output, ResourceResult } from '../resources/result.js';
import type { DoctorCheck } from './doctor/check.js';

/**
 * Settings of `orch serve` from the command line, by flat snake_case name (`agent_port`, `log_level`, …), and
 * `config` (a path), `ready_file` (a path), `new_epoch` (true: begin one), `new_store` and `new_identity` (true: the
 * old one is lost) and `config_schema` (true: print the schema and end). Values are unchecked text; absent options are absent keys.
 */
export type ServeFlags = Readonly<Record<string, string | boolean>>;

/** State of the orchestrator's clock check. */
export interface ServeClock {
  /** Time of the clock (RFC 3339). */
  readonly now: string;
  /** Milliseconds that the clock jumped beyond the elapsed time; negative after it was set back. */
  readonly doubt_ms: number;
  /** True while retention is suspended. */
  readonly waits: boolean;
  /** Milliseconds that the newest audit event lies ahead of the clock; 0 if it does not. */
  readonly ahead_ms: number;
}

export interface RotatedSecretsKey {
  /** ID of the new key. */
  readonly key_id: string;
  /** File that keeps the previous key. */
  readonly kept: string | null;
  /** Number of re-encrypted secrets. */
  readonly secrets: number;
  /** Number of re-encrypted script outputs. */
  readonly outputs: number;
  /** Number of re-encrypted channel configurations. */
  readonly channels: number;
}

/** Options of each `orch agent` command; undefined if absent. */
export interface AgentFlags {
  readonly dataDir: string | undefined;
}

/** Options of the commands that run the agent. */
export interface AgentRunFlags extends AgentFlags {
  /** Public key of the orchestrator, as typed. */
  readonly orchestratorKey: string | undefined;
  /** Enrolment token. */
  readonly token: string | undefined;
  readonly trustOnFirstUse: boolean;
  readonly hostname: string | undefined;
  /** Path of the configuration file; undefined for the default one, if it exists. */
  readonly config: string | undefined;
}

export interface AgentConnectFlags extends AgentRunFlags {
  /** `HOST` or `HOST:PORT`, as typed. */
  readonly target: string;
  /** Asks whether to trust an unknown key; null without a terminal. */
  readonly confirmKey: ((question: string) => Promise<boolean>) | null;
}

export interface AgentListenFlags extends AgentRunFlags {
  /** UDP port of discovery; undefined for the default. */
  readonly port: number | undefined;
}

export interface QuickstartFlags {
  /** True to keep running after the tour. */
  readonly keep: boolean;
  /** New directory for all its data; undefined for a temporary one. */
  readonly dir: string | undefined;
  /** True if standard output gets colours. */
  readonly color: boolean;
}

/** Status of this machine's agent, one printed field per key. */
export type AgentStatus = Readonly<Record<string, string | number | boolean | null>>;

interface AgentLeaving {
  readonly data_dir: string;
  /** Service unit to stop and delete; null if there is none. */
  readonly service: string | null;
  /** Reason why a unit of that name is left alone; null if none is. */
  readonly service_kept: string | null;
}

export interface LocalFlags {
  /** Directory of the local state; undefined for the default. */
  readonly dataDir: string | undefined;
}

export interface LocalContent {
  /** Resources in order of application. */
  readonly resources: readonly DesiredResource[];
  /** Removals in order of their original application. */
  readonly removals: readonly Removal[];
  /** Health checks, which an apply runs last; absent without any. */
  readonly verify?: readonly DesiredCheck[];
}

export interface LocalItem {
  /** Index into the resources followed by the removals. */
  readonly index: number;
  readonly result: ResourceResult;
  /** True if it existed before this run; null if unknown. */
  readonly existed: boolean | null;
  /** Output of a script. */
  readonly output?: Output | null | undefined;
}

interface LocalOptions {
  /** Stops the run at the next resource boundary. */
  readonly signal: AbortSignal;
  readonly onResults: (items: readonly LocalItem[]) => void;
}

interface LocalApplyOptions extends LocalOptions {
  readonly operationId: string;
  /** `observed` hash of a plan: the apply is refused if the machine has changed since. */
  readonly expect: string | null;
  /** Called before the first change is announced. The apply ends without it when this throws. */
  readonly beforeChanges: () => void;
}

export interface LocalOutcome {
  readonly end: 'succeeded' | 'failed' | 'cancelled' | 'interrupted' | 'refused';
  readonly results: readonly LocalItem[];
  readonly error: { readonly code: FaultCode; readonly message: string } | null;
  /** Reports about the health checks of an apply that came to them. */
  readonly checks?: readonly CheckReport[];
}

/** An apply in the agent's journal, which the believed state may not contain yet. */
export interface LocalApply {
  readonly operationId: string;
  /** With masks in the place of secrets. */
  readonly content: LocalContent;
  /** Announced changes, which may or may not have happened. */
  readonly intents: readonly { readonly index: number; readonly existed: boolean }[];
  readonly items: readonly LocalItem[];
}

/** The agent's engine and journal on this machine, without an orchestrator. */
export interface LocalEngine {
  /** Applies that were cut off before the state was stored, oldest first. */
  readonly applies: readonly LocalApply[];
  /** Sentence about a damaged or missing journal; null if it was intact. */
  readonly loss: string | null;
  plan(content: LocalContent, options: LocalOptions): Promise<LocalOutcome & { readonly observed: string | null }>;
  /** Each change is in the journal before it is made, and each result before it is passed on. */
  apply(content: LocalContent, options: LocalApplyOptions): Promise<LocalOutcome>;
  drift(content: LocalContent, options: LocalOptions): Promise<LocalOutcome>;
  /** Removes all applies from the journal. Call it once the state is stored. */
  acknowledge(): void;
}

export interface LocalMachine {
  readonly dataDir: string;
  readonly hostname: string;
  /** Attributes as the agent would report them. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Returns a new ULID. */
  newId(): string;
  /** Opens the engine. The caller must hold the data directory. Throws `journal_corrupt` for a journal of a newer version. */
  openEngine(): LocalEngine;
}

/**
 * Each call returns the exit status when the program ends, or throws a Fault. Long-running programs handle
 * SIGINT and SIGTERM themselves.
 */
export interface Programs {
  serve(flags: ServeFlags): Promise<number>;
  /** Has the running orchestrator rotate its secrets key; `config` and `data_dir` identify it. */
  rotateSecretsKey(flags: ServeFlags): Promise<RotatedSecretsKey>;
  /** Returns the clock check of the running orchestrator; with `accept`, confirms the clock first. */
  clock(flags: ServeFlags, accept: boolean): Promise<ServeClock>;
  /** Maintenance of the store, on the orchestrator's host. */
  readonly store: StorePrograms;
  readonly agent: {
    connect(flags: AgentConnectFlags): Promise<number>;
    /** Runs the agent, which waits for a discovery packet. */
    listen(flags: AgentListenFlags): Promise<number>;
    status(flags: AgentFlags): Promise<AgentStatus>;
    /** Forgets the pinned key of the orchestrator. The caller has obtained consent. */
    repin(flags: AgentFlags): Promise<void>;
    /** Returns what `leave` would delete. */
    planLeave(flags: AgentFlags): Promise<AgentLeaving>;
    /** Deletes the service, the identity, the pin and the journal. The caller has obtained consent. */
    leave(flags: AgentFlags): Promise<AgentLeaving>;
    /** Returns the JSON Schema of the agent's configuration file. */
    configSchema(): Promise<object>;
  };
  readonly service: ServicePrograms;
  /** Checks this machine: runtime, native modules, and the services of `orch` on it. Changes nothing, and never throws. */
  doctor(): Promise<readonly DoctorCheck[]>;
  local(flags: LocalFlags): Promise<LocalMachine>;
  quickstart(flags: QuickstartFlags): Promise<number>;
}

/** Identifies an orchestrator by `config` and `data_dir`. */
interface StoreRequest {
  readonly flags: ServeFlags;
}

export interface BackupRequest extends StoreRequest {
  /** Absolute path. */
  readonly file: string;
  /** True to replace an existing file. */
  readonly force: boolean;
}

interface BackupMade {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly schema: number;
  /** Sequence number of the last audit event in the backup. */
  readonly last_seq: number;
  readonly last_hash: string;
  /** Paths of the key files, which the backup does not contain. */
  readonly keys: readonly string[];
}

export interface RestoreRequest extends StoreRequest {
  /** Absolute path. */
  readonly file: string;
  /** True to go on without the backup's identity.key. */
  readonly newIdentity: boolean;
  /** Asks for consent after all checks and before any change. If it throws, the restore ends. */
  readonly confirm: (plan: RestorePlan) => Promise<void>;
}

export interface RestorePlan {
  readonly file: string;
  readonly sha256: string;
  readonly data_dir: string;
  /** Place of the store that is replaced: the data directory, or the URL of its database. */
  readonly store: string;
  /** Creation time (RFC 3339); null for a copied database file. */
  readonly made_at: string | null;
  readonly schema: number;
  /** Sequence number of the backup's last audit event. */
  readonly last_seq: number;
  readonly last_hash: string;
  readonly last_at: string | null;
  readonly present: 'store' | 'unreadable' | 'none';
  /** Sequence number of the present store's last audit event. */
  readonly present_seq: number | null;
  readonly present_at: string | null;
  /** Removed operators, and rejected agents, that the restore makes active again. */
  readonly operators_back: readonly string[];
  readonly agents_back: readonly string[];
}

export interface Restored extends RestorePlan {
  readonly epoch: number;
  /** Number of ended sessions. */
  readonly sessions: number;
  /** Number of revoked enrolment tokens. */
  readonly tokens: number;
  /** Number of unfinished applies, whose result the agents are asked for. */
  readonly operations: number;
  /** Number of pending deliveries, which may be sent twice. */
  readonly deliveries: number;
  /** IDs of the rollouts that are halted until an operator resumes them. */
  readonly rollouts: readonly string[];
  /** Names of the assignments whose automatic applies wait until an operator resumes them. */
  readonly assignments: readonly string[];
  /** Path of the replaced store, or the schema in its database that holds it; null if there was none. */
  readonly kept: string | null;
  /** Number of recordings of sessions that the restored store does not know. */
  readonly recordings: number;
  /** File of the rotated-out key that opens the store; null if `secrets.key` does. */
  readonly secrets_key: string | null;
}

/** A store as typed: a data directory, the path of a file, or a URL of PostgreSQL. */
export interface StorePlace {
  readonly text: string;
  /** File with the password of the database; '' for none. */
  readonly passwordFile: string;
}

export interface CopyRequest {
  readonly from: StorePlace;
  readonly to: StorePlace;
  /** Called with a sentence about each step. */
  readonly onProgress: (step: string) => void;
}

export interface CopiedStore {
  readonly from: string;
  readonly to: string;
  readonly schema: number;
  /** Number and hash of the last audit event that was copied. */
  readonly last_seq: number;
  readonly last_hash: string;
  /** Number of copied rows of each table. */
  readonly rows: Readonly<Record<string, number>>;
  readonly epoch: number;
  readonly sessions: number;
  readonly tokens: number;
  readonly operations: number;
  readonly deliveries: number;
  /** IDs of the rollouts that are halted until an operator resumes them. */
  readonly rollouts: readonly string[];
  /** Names of the assignments whose automatic applies wait until an operator resumes them. */
  readonly assignments: readonly string[];
  /** What to do next, in order. */
  readonly next: readonly string[];
}

export interface RecoverRequest extends StoreRequest {
  /** Public key (64 hex digits). */
  readonly publicKey: string;
  readonly username: string | undefined;
  /** Asks for consent before any change. If it throws, nothing is changed. */
  readonly confirm: (found: RecoveredAdmin) => Promise<void>;
}

export interface RecoveredAdmin {
  readonly operator_id: string;
  readonly username: string;
  readonly public_key: string;
  /** `none` if the key already belonged to an active admin. */
  readonly change: 'added' | 'role_changed' | 'none';
  readonly former_role: string | null;
}

/** What `orch serve install` finds on this host before it asks anything. */
export interface ServeInstallPlan {
  /** True once the service has a store, and so an operator. */
  readonly hasStore: boolean;
  /** Names and addresses under which others may reach this host, the likeliest first. */
  readonly addresses: readonly string[];
  /** Settings of the configuration file that the command asks about; undefined where the file has none. */
  readonly settings: ServeAddresses;
  readonly configFile: string;
}

/** Addresses of an orchestrator, as its settings name them. */
export interface ServeAddresses {
  readonly api_host: string | undefined;
  readonly agent_host: string | undefined;
  readonly advertised_host: string | undefined;
}

export interface ServeInstallRequest {
  readonly settings: ServeAddresses;
  /** First operator; null when there is one. */
  readonly bootstrap: { readonly publicKey: string; readonly username: string } | null;
}

/** A service that runs. */
export interface InstalledService {
  readonly unit: string;
  /** Path of the unit file. */
  readonly unit_file: string;
}

export interface InstalledServe extends InstalledService {
  readonly api_url: string;
  /** URL of the API on this host itself. */
  readonly local_url: string;
  readonly agent_address: string;
  readonly tls_fingerprint: string | null;
  readonly public_key: string;
}

export interface AgentInstallRequest {
  /** `HOST` or `HOST:PORT`; undefined to wait for discovery. */
  readonly target: string | undefined;
  readonly token: string | undefined;
  readonly orchestratorKey: string | undefined;
  readonly trustOnFirstUse: boolean;
  readonly hostname: string | undefined;
  /** True to allow terminals, false to forbid them; undefined leaves the settings as they are. */
  readonly terminals: boolean | undefined;
}

export interface InstalledAgent extends InstalledService {
  readonly node_id: string;
  readonly orchestrator: string | null;
  /** State of the connection: `docs/protocols/agent-link.md`. */
  readonly link: string;
  readonly last_error: string | null;
  readonly hint: string | null;
}

export interface UninstalledService {
  readonly unit: string;
  /** Path of the unit that was stopped; null if there was none. */
  readonly unit_file: string | null;
  /** Directories and files that stay. */
  readonly kept: readonly string[];
}

/** Services of this host. Each throws `service_failed`, `permission_denied` for other users than root, or `unsupported_on_platform`. */
export interface ServicePrograms {
  planServe(): Promise<ServeInstallPlan>;
  installServe(request: ServeInstallRequest): Promise<InstalledServe>;
  uninstallServe(): Promise<UninstalledService>;
  installAgent(request: AgentInstallRequest): Promise<InstalledAgent>;
  uninstallAgent(options: { readonly purge: boolean }): Promise<UninstalledService>;
}

export interface StorePrograms {
  /** Copies the store of a running or stopped orchestrator. */
  backup(request: BackupRequest): Promise<BackupMade>;
  /** Replaces the store of a stopped orchestrator by a backup. */
  restore(request: RestoreRequest): Promise<Restored>;
  /** Makes a key an admin in the store of a stopped orchestrator. */
  recoverAdmin(request: RecoverRequest): Promise<RecoveredAdmin>;
  /** Copies the store of a stopped orchestrator to a place without one. */
  copy(request: CopyRequest): Promise<CopiedStore>;
}
