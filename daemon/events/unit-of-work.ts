/** Every change of the store goes through here: the change and its audit events commit together or not at all. */
import type { Transaction } from 'kysely';
import type { Database } from '../store/schema.js';
import type { DomainEvent } from './domain-event.js';

/** Hands an event to the transaction that is open. */
export type Emit = (event: DomainEvent) => void;

export interface UnitOfWork {
  /**
   * Runs `work` in one transaction. Events given to `emit` are appended to the audit log before it commits and published
   * on the bus after. Inside, nothing but the store is awaited. Throws Fault `store_unavailable` when it cannot commit.
   */
  write<T>(work: (tx: Transaction<Database>, emit: Emit) => Promise<T>): Promise<T>;
}
