/** What the command line has done to the store of an orchestrator on its host. */
import type { ServeFlags } from './programs.js';

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
