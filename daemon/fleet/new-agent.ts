/** The record of an agent that comes for the first time. */
import type { AgentMessageOf } from '../../src/wire/messages.js';
import type { DomainEvent } from '../events/domain-event.js';
import type { AgentRow } from '../store/agents.js';
import type { AgentConnection } from './agent-connection.js';
import { agentEvent } from './agent-event.js';

export interface NewAgent {
  readonly connection: AgentConnection;
  readonly hello: AgentMessageOf<'hello'>;
}

export const recordOfNew = (
  { connection, hello }: NewAgent,
  { id, now }: { readonly id: string; readonly now: number },
): AgentRow => ({
  node_id: connection.nodeId,
  public_key: connection.publicKey,
  name: null,
  status: 'pending',
  created_at: now,
  created_id: id,
  updated_at: now,
  connected_at: now,
  last_seen_at: now,
  initial_hostname: hello.hostname,
  initial_ip: connection.remoteAddress,
  agent_version: hello.agent_version,
  protocol_version: hello.protocol_version,
  attributes_json: JSON.stringify(hello.attributes),
  state_operation_id: null,
  enrolment_token_id: null,
});

export function pendingEvent({ connection, hello: { hostname } }: NewAgent): DomainEvent {
  const { publicKey: public_key, remoteAddress: address, nodeId: node_id } = connection;
  const summary = `An unknown agent on ${hostname} (${address}) waits for approval`;
  return agentEvent('agent.pending', { node_id, name: null }, summary, { public_key, hostname, address });
}
