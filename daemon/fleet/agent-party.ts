/** An agent as actor or target of an event. */
import type { Party } from '../events/domain-event.js';

export const agentParty = (agent: { readonly node_id: string; readonly name: string | null }): Party => ({
  id: agent.node_id,
  name: agent.name ?? agent.node_id,
  type: 'agent',
});
