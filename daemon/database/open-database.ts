/** The open store, whichever engine holds it. */
import type { Kysely } from 'kysely';
import type { Database } from './schema.js';
import type { StoreKind } from './store-driver.js';

export interface OpenDatabase {
  readonly kind: StoreKind;
  /** Place of the store as messages name it: a path, or a URL without a password. */
  readonly place: string;
  readonly db: Kysely<Database>;
  /** Returns the round-trip time to the store's server in milliseconds: 0 for a file, null while the server does not answer. */
  latencyMs(): number | null;
  /** Copies the store to an SQLite file while other work continues. Throws `store_unavailable`. */
  backup(file: string): Promise<void>;
  /**
   * Copies the store's file to a file that need not survive a crash. Rejects when the signal aborts. Null for a store on a
   * server, which has its own checks.
   */
  readonly copy: ((file: string, signal: AbortSignal) => Promise<void>) | null;
  /** Closes the store after the transaction in flight. Idempotent. */
  close(): Promise<void>;
}
