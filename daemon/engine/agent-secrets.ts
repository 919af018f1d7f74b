/** The engine's view of secrets: the interface that provides values, and the audit events about their use. */
import { Fault } from '../../src/kernel/fault.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { SecretSource } from '../../src/language/filling.js';
import type { Party } from '../core/domain-event.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import { type AgentRow, agentParty } from '../fleet/agent-store.js';
import { agentLabel, type KnownAgent } from './runs/agent-gate.js';

/** Secrets as of one moment. */
export interface ResolvedSecrets {
  readonly source: SecretSource;
  /** Hashes of all values that `source` has returned so far, by secret name. */
  readonly hashes: ReadonlyMap<string, string>;
}

export interface AgentSecrets {
  /** Returns the named secrets, as far as the agent may have them now. */
  resolve(db: Queryable, agent: AgentRow, names: ReadonlySet<string>): Promise<ResolvedSecrets>;
}

interface SecretUse {
  readonly agent: KnownAgent;
  readonly names: readonly string[];
  readonly actor: Party;
  /** Reason for sending the secrets, as a noun phrase such as `an apply`. */
  readonly purpose: string;
  readonly metadata: JsonObject;
}

/**
 * Emits one audit event for each secret that is about to be sent to an agent, in the transaction that decides to send it. Throws
 * `secret_unavailable` when the agent may no longer have one of them.
 */
export async function noteSecretUse(
  { tx, emit, secrets }: { readonly tx: Queryable; readonly emit: Emit; readonly secrets: AgentSecrets },
  { agent, names, actor, purpose, metadata }: SecretUse,
): Promise<void> {
  if (names.length === 0) return;
  const { source } = await secrets.resolve(tx, agent.row, new Set(names));
  for (const name of names) {
    const found = source(name);
    if (found === null || 'refused' in found) throw unavailable(name, found?.refused);
    emit({
      type: 'secret.used',
      actor,
      target: { id: name, name, type: 'secret' },
      summary: `the secret ${name} was given to ${agentLabel(agent)} for ${purpose}`,
      metadata: { ...metadata, agent: { ...agentParty(agent.row) } },
    });
  }
}

const unavailable = (name: string, why = 'no longer exists'): Fault =>
  new Fault('secret_unavailable', `the secret "${name}" ${why}`, {
    hint: 'see the secret, its expiry and its restriction: orch secrets show NAME',
    data: { secret: name },
  });
