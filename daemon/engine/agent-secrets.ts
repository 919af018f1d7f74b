/** The engine's view of secrets: what it needs of whoever keeps them, and what it tells about their use. */
import { Fault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { SecretSource } from '../../src/language/fill.js';
import type { Party } from '../core/domain-event.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import type { AgentRow } from '../fleet/agent-store.js';
import { agentLabel, type KnownAgent } from './agent-gate.js';
import { agentParty } from './operations/apply-events.js';

/** Keyed hashes of values by the names of their secrets: they tell whether a value is the same, and not what it is. */
export type SecretHashes = Readonly<Record<string, string>>;

/** Secrets as of one moment. */
export interface LentSecrets {
  readonly source: SecretSource;
  /** Of every value that the source has given so far. */
  readonly hashes: ReadonlyMap<string, string>;
}

export interface AgentSecrets {
  /** The named secrets, as far as the agent may have them now. */
  lend(db: Queryable, agent: AgentRow, names: ReadonlySet<string>): Promise<LentSecrets>;
}

/** An orchestrator without secrets. */
export const noSecrets: AgentSecrets = {
  lend: async () => ({ source: () => null, hashes: new Map() }),
};

interface SecretUse {
  readonly agent: KnownAgent;
  readonly names: readonly string[];
  readonly actor: Party;
  /** What they are sent for, in words such as `an apply`. */
  readonly purpose: string;
  readonly metadata: JsonObject;
}

/**
 * Puts into the log that secrets are about to be sent to an agent, one event for each, in the transaction that decides it.
 * Throws `secret_unavailable` when the agent may not have one of them any more.
 */
export async function noteSecretUse(
  { tx, emit, secrets }: { readonly tx: Queryable; readonly emit: Emit; readonly secrets: AgentSecrets },
  { agent, names, actor, purpose, metadata }: SecretUse,
): Promise<void> {
  if (names.length === 0) return;
  const { source } = await secrets.lend(tx, agent.row, new Set(names));
  for (const name of names) {
    const found = source(name);
    if (found === null || 'refused' in found) throw unavailable(name, found?.refused);
    emit({
      type: 'secret.used',
      actor,
      target: { id: name, name, type: 'secret' },
      summary: `the secret ${name} was given to ${agentLabel(agent)} for ${purpose}`,
      metadata: { ...metadata, agent: { ...agentParty({ nodeId: agent.nodeId, nodeName: agent.row.name }) } },
    });
  }
}

const unavailable = (name: string, why = 'does not exist any more'): Fault =>
  new Fault('secret_unavailable', `the secret "${name}" ${why}`, {
    hint: 'see the secret, its expiry and its restriction: orch secrets show NAME',
    data: { secret: name },
  });
