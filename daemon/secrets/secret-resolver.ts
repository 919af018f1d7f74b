/** Resolves secrets for agents: returns the value, or the reason why the agent may not have it. */
import { toTimestamp } from '../../src/kernel/clock.js';
import { isFault } from '../../src/kernel/fault.js';
import type { SecretSource } from '../../src/language/filling.js';
import type { Core } from '../core/core.js';
import type { Queryable } from '../database/schema.js';
import type { AgentRow } from '../fleet/agent-store.js';
import { tagsOf } from '../fleet/tag-store.js';
import type { Keyring } from './keyring.js';
import { type Recipient, refusalBy } from './restriction.js';
import { findSecrets, type SecretRow, sealedRecordOf } from './secret-store.js';

interface SecretResolverOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly keyring: Keyring;
}

/** Hex digits of the hash that are shown to people. */
const TAG_DIGITS = 4;

/** A snapshot of the requested secrets. */
interface ResolvedSecrets {
  readonly source: SecretSource;
  /** Keyed hashes, by name, of the values that `source` has returned so far. */
  readonly hashes: ReadonlyMap<string, string>;
}

export class SecretResolver {
  private readonly options: SecretResolverOptions;

  constructor(options: SecretResolverOptions) {
    this.options = options;
  }

  /** Returns a snapshot of the named secrets for an agent. A secret is decrypted only when `source` is called for it. */
  async resolve(db: Queryable, agent: AgentRow, names: ReadonlySet<string>): Promise<ResolvedSecrets> {
    const rows = new Map((await findSecrets(db, [...names])).map((row) => [row.name, row]));
    const tags = [...rows.values()].some(({ restriction }) => restriction !== null)
      ? await tagsOf(db, agent.node_id)
      : {};
    const recipient = { nodeId: agent.node_id, name: agent.name ?? agent.node_id, tags };
    const hashes = new Map<string, string>();
    return {
      source: (name) => {
        const row = rows.get(name);
        if (row === undefined) return null;
        const refused = this.refusal(row, recipient);
        const value = refused === null ? this.valueOf(row) : null;
        if (value === null) return { refused: refused ?? 'cannot be decrypted; set its value again' };
        const hash = this.options.keyring.hash(name, value);
        hashes.set(name, hash);
        return { value, tag: hash.slice(0, TAG_DIGITS) };
      },
      hashes,
    };
  }

  private refusal({ expires_at, restriction }: SecretRow, recipient: Recipient): string | null {
    if (expires_at !== null && expires_at <= this.options.clock.now()) {
      return `expired at ${toTimestamp(expires_at)}`;
    }
    return restriction === null ? null : refusalBy(restriction, recipient);
  }

  private valueOf(row: SecretRow): string | null {
    try {
      return this.options.keyring.open(row, sealedRecordOf(row));
    } catch (error) {
      if (!isFault(error, 'secrets_locked')) throw error;
      this.options.logger.error('a secret cannot be decrypted', { secret: row.name, reason: error.message });
      return null;
    }
  }
}
