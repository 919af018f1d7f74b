/** The connections that this process holds; everything else about agents is in the store. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';
import type { AgentLink } from '../engine/agent-link.js';
import type { AgentConnection } from './agent-connection.js';

/** One connection for each agent at most, from its hello until it ends. */
export class ConnectionRegistry implements AgentLink {
  private readonly connections = new Map<NodeId, AgentConnection>();

  get(nodeId: NodeId): AgentConnection | undefined {
    return this.connections.get(nodeId);
  }

  /** One that has the place is cut: what is not in here could not be revoked. */
  add(connection: AgentConnection): void {
    this.connections.get(connection.nodeId)?.terminate();
    this.connections.set(connection.nodeId, connection);
  }

  /** Forgets a connection unless another has taken its place; true when it was the one. */
  remove(connection: AgentConnection): boolean {
    if (this.connections.get(connection.nodeId) !== connection) return false;
    return this.connections.delete(connection.nodeId);
  }

  /** True while the agent has a connection and was told whether it is approved or pending. */
  has(nodeId: NodeId): boolean {
    const state = this.connections.get(nodeId)?.state;
    return state === 'approved' || state === 'pending';
  }

  isConnected(nodeId: NodeId): boolean {
    return this.connections.get(nodeId)?.state === 'approved';
  }

  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean {
    const connection = this.connections.get(nodeId);
    if (connection?.state !== 'approved') return false;
    return messages.every((message) => connection.send(message));
  }

  /** False for an agent that is not connected, or is too old for messages of this type. */
  knows(nodeId: NodeId, type: OrchestratorMessage['type']): boolean {
    return this.connections.get(nodeId)?.knows(type) ?? false;
  }

  /** Approved agents that are connected now. */
  *connected(): Iterable<NodeId> {
    for (const [nodeId, { state }] of this.connections) if (state === 'approved') yield nodeId;
  }

  /** Asks for signs of life, and cuts those that have been silent for too long. */
  heartbeat(): void {
    for (const connection of this.connections.values()) connection.beat();
  }
}
