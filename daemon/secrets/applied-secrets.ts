/** With which values of secrets the resources of agents were applied. */
import type { Queryable } from '../database/schema.js';

export interface AppliedSecrets {
  readonly node_id: string;
  readonly agent_name: string | null;
  readonly applied_at: number;
  /** Keyed hashes by the names of the secrets. */
  readonly secrets: Readonly<Record<string, string>>;
}

/** Every applied resource that holds the secret, by agent. */
export async function appliedSecrets(db: Queryable, name: string): Promise<readonly AppliedSecrets[]> {
  const rows = await db
    .selectFrom('applied_resources')
    .innerJoin('agents', 'agents.node_id', 'applied_resources.node_id')
    .select(['applied_resources.node_id', 'agents.name', 'applied_at', 'secrets_json'])
    .where('secrets_json', 'like', `%${JSON.stringify(name)}:%`)
    .orderBy('agents.name')
    .orderBy('applied_resources.node_id')
    .execute();
  const all = rows.map(({ node_id, name: agent_name, applied_at, secrets_json }) => ({
    node_id,
    agent_name,
    applied_at,
    secrets: JSON.parse(secrets_json ?? '{}'),
  }));
  // In a pattern `_` stands for any character, and case does not count.
  return all.filter(({ secrets }) => Object.hasOwn(secrets, name));
}
