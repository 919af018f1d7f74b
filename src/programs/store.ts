/** Commands on the store of an orchestrator of this host: backup, restore, copy, and the recovery of an admin. */
import type { ServeFlags } from './serve.js';

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
  /** Number of the backup's last audit event; 0 for an empty log. */
  readonly last_seq: number;
  readonly last_hash: string;
  /** Time of that event (RFC 3339); null for an empty log. */
  readonly last_at: string | null;
  /** State of the present store; `unreadable` when it is damaged. */
  readonly present: 'store' | 'unreadable' | 'none';
  /** Number of the present store's last audit event; null without a readable store. */
  readonly present_seq: number | null;
  /** Time of that event (RFC 3339); null without one. */
  readonly present_at: string | null;
  /** Removed operators, and rejected agents, that the restore makes active again. */
  readonly operators_back: readonly string[];
  readonly agents_back: readonly string[];
}

/** The result of a new epoch in a store that was restored or copied. */
export interface EpochReset {
  readonly epoch: number;
  /** Number of ended sessions: their operators may have logged out or been removed since. */
  readonly sessions: number;
  /** Number of revoked enrolment tokens: they may have been used or revoked since. */
  readonly tokens: number;
  /** Number of unfinished applies. They are not sent again; the agents are asked for their outcome. */
  readonly operations: number;
  /** Number of pending deliveries of notifications, which may be sent twice. */
  readonly deliveries: number;
  /** IDs of the rollouts that are halted until an operator resumes them. */
  readonly rollouts: readonly string[];
  /** Names of the assignments whose automatic applies wait until an operator resumes them. */
  readonly assignments: readonly string[];
}

export interface Restored extends RestorePlan, EpochReset {
  /** Path of the replaced store, or the schema in its database that holds it; null if there was none. */
  readonly kept: string | null;
  /** Number of recordings of sessions that the restored store does not know; `orch serve` adopts them. */
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

export interface CopiedStore extends EpochReset {
  /** Places as messages name them: a path, or a URL without a password. */
  readonly from: string;
  readonly to: string;
  readonly schema: number;
  /** Number and hash of the last audit event that was copied; 0 and '' for an empty log. */
  readonly last_seq: number;
  readonly last_hash: string;
  /** Number of copied rows of each table. */
  readonly rows: Readonly<Record<string, number>>;
  /** The next steps, in order. */
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
