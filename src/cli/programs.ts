/** The programs that the command line starts but does not contain: `bin` hands them in as functions. */
import type { FaultCode } from '../kernel/fault.js';
import type { DesiredResource, Removal } from '../resources/desired.js';
import type { Output, ResourceResult } from '../resources/result.js';

/**
 * Settings of `orch serve` as the command line gave them, by flat snake_case name (`agent_port`, `log_level`, …), and
 * beside them `config` (a path), `ready_file` (a path), `new_epoch` (true: begin one), `new_store` and `new_identity` (true: the
 * old one is lost) and `config_schema` (true: print the schema and end). Text is neither checked nor converted; what was not given is absent.
 */
export type ServeFlags = Readonly<Record<string, string | boolean>>;

/** How far the orchestrator believes its clock. */
export interface ServeClock {
  /** RFC 3339. */
  readonly now: string;
  /** Milliseconds of the clock's time that the orchestrator has not seen pass; below zero after the clock was set back. */
  readonly doubt_ms: number;
  /** True while nothing is deleted for its age. */
  readonly waits: boolean;
  /** By how many milliseconds the newest event of the audit log lies ahead of the clock, 0 when none does. */
  readonly ahead_ms: number;
}

export interface RotatedSecretsKey {
  /** Of the new key. */
  readonly key_id: string;
  /** The file that keeps the key of before. */
  readonly kept: string | null;
  /** How many were encrypted anew. */
  readonly secrets: number;
  /** How many outputs of scripts with secrets were. */
  readonly outputs: number;
  /** How many configurations of channels were. */
  readonly channels: number;
}

/** What every `orch agent` command was given; absent is undefined. */
export interface AgentFlags {
  readonly dataDir: string | undefined;
}

/** What an agent that is to run was given. */
export interface AgentRunFlags extends AgentFlags {
  /** The orchestrator's public key as it was typed. */
  readonly orchestratorKey: string | undefined;
  /** The enrolment token itself, wherever it was read from. */
  readonly token: string | undefined;
  readonly trustOnFirstUse: boolean;
  readonly hostname: string | undefined;
  /** The configuration file; undefined takes the standard one when it is there. */
  readonly config: string | undefined;
}

export interface AgentConnectFlags extends AgentRunFlags {
  /** `HOST` or `HOST:PORT` as it was typed. */
  readonly target: string;
  /** Asks whether to trust a key that nobody named; null when there is no terminal to ask on. */
  readonly confirmKey: ((question: string) => Promise<boolean>) | null;
}

export interface AgentListenFlags extends AgentRunFlags {
  /** UDP port of discovery; undefined takes the standard one. */
  readonly port: number | undefined;
}

export interface QuickstartFlags {
  /** Stay up after the tour instead of stopping. */
  readonly keep: boolean;
  /** The new directory for everything it makes; undefined picks one. */
  readonly dir: string | undefined;
  /** Colours are welcome on standard output. */
  readonly color: boolean;
}

/** What `orch agent status` tells about this machine's agent: printed as it is, one field a line. */
export type AgentStatus = Readonly<Record<string, string | number | boolean | null>>;

export interface AgentLeaving {
  readonly data_dir: string;
  /** The unit that is stopped and deleted; null when there is none. */
  readonly service: string | null;
  /** A unit of that name that is left alone, and why; null when there is none. */
  readonly service_kept: string | null;
}

export interface LocalFlags {
  /** Where it is kept what was applied; undefined picks the standard directory. */
  readonly dataDir: string | undefined;
}

export interface LocalContent {
  /** In the order of application. */
  readonly resources: readonly DesiredResource[];
  /** In the order of their original application. */
  readonly removals: readonly Removal[];
}

export interface LocalItem {
  /** Position: resources first, then removals. */
  readonly index: number;
  readonly result: ResourceResult;
  /** Whether the thing was there before this run touched it; null when unknown. */
  readonly existed: boolean | null;
  /** What a script wrote. */
  readonly output?: Output | null | undefined;
}

export interface LocalOptions {
  /** Ends the run at the next resource boundary. */
  readonly signal: AbortSignal;
  readonly onResults: (items: readonly LocalItem[]) => void;
}

export interface LocalApplyOptions extends LocalOptions {
  /** For whoever reads later which operation owes a trigger. */
  readonly operationId: string;
  /** `observed` of a plan: the apply changes nothing when the machine is another by now. */
  readonly expect: string | null;
  /** Called with what is about to be changed, before it is. */
  readonly intend: (intents: readonly Pick<LocalItem, 'index' | 'existed'>[]) => void;
}

export interface LocalOutcome {
  readonly end: 'succeeded' | 'failed' | 'cancelled' | 'interrupted' | 'refused';
  readonly results: readonly LocalItem[];
  readonly error: { readonly code: FaultCode; readonly message: string } | null;
}

/** This machine and the agent's engine on it, without an orchestrator. */
export interface LocalMachine {
  readonly dataDir: string;
  readonly hostname: string;
  /** As its agent would report them. */
  readonly attributes: Readonly<Record<string, string>>;
  /** ULIDs. */
  newId(): string;
  plan(content: LocalContent, options: LocalOptions): Promise<LocalOutcome & { readonly observed: string | null }>;
  apply(content: LocalContent, options: LocalApplyOptions): Promise<LocalOutcome>;
  drift(content: LocalContent, options: LocalOptions): Promise<LocalOutcome>;
}

/**
 * Each call returns when the program has ended, with its exit status, or throws a Fault. The long-running ones handle
 * SIGINT and SIGTERM themselves.
 */
export interface Programs {
  serve(flags: ServeFlags): Promise<number>;
  /** Has the running orchestrator change the key of its secrets; `config` and `data_dir` say which one. */
  rotateSecretsKey(flags: ServeFlags): Promise<RotatedSecretsKey>;
  /** Shows what the running orchestrator holds of its clock, and with `accept` has it take the clock as right. */
  clock(flags: ServeFlags, accept: boolean): Promise<ServeClock>;
  /** What is done to the store of an orchestrator on its host. */
  readonly store: StorePrograms;
  readonly agent: {
    connect(flags: AgentConnectFlags): Promise<number>;
    /** Waits to be found by a discovery packet. */
    listen(flags: AgentListenFlags): Promise<number>;
    status(flags: AgentFlags): Promise<AgentStatus>;
    /** Forgets the pinned key of the orchestrator. The command line has asked before. */
    repin(flags: AgentFlags): Promise<void>;
    /** What `leave` would delete. */
    whatLeaves(flags: AgentFlags): Promise<AgentLeaving>;
    /** Deletes the service, the identity, the pin and the journal. The command line has asked before. */
    leave(flags: AgentFlags): Promise<AgentLeaving>;
    /** Of the agent's YAML file. */
    configSchema(): Promise<object>;
  };
  local(flags: LocalFlags): Promise<LocalMachine>;
  quickstart(flags: QuickstartFlags): Promise<number>;
}

/** Which orchestrator: `config` and `data_dir`. */
interface StoreRequest {
  readonly flags: ServeFlags;
}

export interface BackupRequest extends StoreRequest {
  /** Absolute. */
  readonly file: string;
  /** Take the place of a file of that name. */
  readonly force: boolean;
}

export interface BackupMade {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly schema: number;
  /** Of the last audit event in it. */
  readonly last_seq: number;
  readonly last_hash: string;
  /** Paths of key files that belong to it and are not in it. */
  readonly keys: readonly string[];
}

export interface RestoreRequest extends StoreRequest {
  /** Absolute. */
  readonly file: string;
  /** Go on without the backup's own identity.key. */
  readonly newIdentity: boolean;
  /** Asks, after every check and before any change; what it throws ends the restore. */
  readonly confirm: (plan: RestorePlan) => Promise<void>;
}

export interface RestorePlan {
  readonly file: string;
  readonly sha256: string;
  readonly data_dir: string;
  /** RFC 3339; null for a file that was copied by hand. */
  readonly made_at: string | null;
  readonly schema: number;
  /** The last audit event of the backup. */
  readonly last_seq: number;
  readonly last_hash: string;
  readonly last_at: string | null;
  readonly present: 'store' | 'unreadable' | 'none';
  /** The last audit event of the store that is there now. */
  readonly present_seq: number | null;
  readonly present_at: string | null;
  /** Usernames and names of agents that may do again what they may not do now. */
  readonly operators_back: readonly string[];
  readonly agents_back: readonly string[];
}

export interface Restored extends RestorePlan {
  readonly epoch: number;
  /** Logins that are over. */
  readonly sessions: number;
  /** Enrolment tokens that were revoked. */
  readonly tokens: number;
  /** Applies of which the agents are asked what became of them. */
  readonly operations: number;
  /** Deliveries that are sent, perhaps for the second time. */
  readonly deliveries: number;
  /** Where the store is that was there; null when there was none. */
  readonly kept: string | null;
  /** Recordings of sessions that the new store does not know. */
  readonly recordings: number;
  /** The file of a key of before a rotation that was put to use; null when `secrets.key` opens the store. */
  readonly secrets_key: string | null;
}

export interface RecoverRequest extends StoreRequest {
  /** 64 hex digits. */
  readonly publicKey: string;
  readonly username: string | undefined;
  /** Asks before any change; what it throws ends it. */
  readonly confirm: (found: RecoveredAdmin) => Promise<void>;
}

export interface RecoveredAdmin {
  readonly operator_id: string;
  readonly username: string;
  readonly public_key: string;
  /** `none`: the key was an active admin's already. */
  readonly change: 'added' | 'role_changed' | 'none';
  readonly former_role: string | null;
}

export interface StorePrograms {
  /** Beside the running orchestrator, or of a stopped one. */
  backup(request: BackupRequest): Promise<BackupMade>;
  /** Of a stopped one. */
  restore(request: RestoreRequest): Promise<Restored>;
  /** In the store of a stopped one. */
  recoverAdmin(request: RecoverRequest): Promise<RecoveredAdmin>;
}
