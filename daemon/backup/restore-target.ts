/** The target of a restore: a store in a file, or a database. */
import type { StoreFacts } from './raw-store.js';

export type Present = StoreFacts | 'unreadable' | 'none';

/** Where a prepared store is put. */
export interface RestoreTarget {
  readonly place: string;
  /** Returns the facts of the present store. */
  present(): Promise<Present>;
  /**
   * Replaces the present store with the staged one: an interruption at any point leaves one of the two in place, complete.
   * Returns the name under which the present store is kept; null when there is none.
   */
  put(staged: string): Promise<string | null>;
  close(): Promise<void>;
}
