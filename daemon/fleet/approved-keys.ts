/**
 * Public keys of approved agents. They passed the check for weak keys when their agents first connected, and that
 * check, of the bytes alone, takes longer than the rest of a TLS handshake: the benchmark row of reconnecting agents
 * misses its goal when it is repeated. A key stays in the list after its agent was rejected, because being listed
 * grants nothing.
 */
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import type { Queryable } from '../database/schema.js';
import { listApprovedKeys } from './agent-store.js';

export class ApprovedKeys {
  private readonly db: Queryable;
  private readonly keys = new Set<string>();

  constructor(db: Queryable) {
    this.db = db;
  }

  /** Adds the keys of all approved agents in the store. */
  async load(): Promise<void> {
    for (const key of await listApprovedKeys(this.db)) this.keys.add(key);
  }

  /** Adds the key of an agent that is approved, as its connection proved it. */
  add(key: PublicKeyHex): void {
    this.keys.add(key);
  }

  has(key: PublicKeyHex): boolean {
    return this.keys.has(key);
  }
}
