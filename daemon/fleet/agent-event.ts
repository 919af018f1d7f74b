/** Events of what an agent does by itself: it is the actor as well as the target. */
import type { JsonObject } from '../../src/kernel/json.js';
import type { DomainEvent } from '../events/domain-event.js';
import type { EventType } from '../events/event-type.js';
import { agentParty } from './agent-party.js';

interface NamedAgent {
  readonly node_id: string;
  readonly name: string | null;
}

export function agentEvent(
  type: EventType,
  agent: NamedAgent,
  summary: string,
  metadata: JsonObject = {},
): DomainEvent {
  const party = agentParty(agent);
  return { type, actor: party, target: party, summary, metadata };
}

/** What people call the agent: its name, or its node ID while it has none. */
export const agentLabel = (agent: NamedAgent): string => agent.name ?? agent.node_id;
