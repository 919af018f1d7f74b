/** The connections that this process holds; everything else about agents is in the store. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { AgentMessage, OrchestratorMessage } from '../../src/wire/messages.js';
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

/** What the engine needs of whoever holds the connections. */
export interface AgentLink {
  /** True while an approved agent is connected and has been told so. */
  isConnected(nodeId: NodeId): boolean;
  /** Sends in order to an approved, connected agent; false when there is no such connection (nothing was sent then). */
  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean;
}

/** Messages of approved agents that are the engine's business. */
export type EngineMessage = Exclude<
  AgentMessage,
  { type: 'hello' | 'attributes' | 'metrics' | 'terminal_answer' | 'terminals' }
>;

/** What the connections tell the engine. */
export interface AgentTraffic {
  /** A message of an approved agent. A Fault `protocol_violation` closes that connection. */
  receive(nodeId: NodeId, message: EngineMessage): Promise<void>;
  /** The connection is gone; what was running on the agent goes on there. */
  disconnected(nodeId: NodeId): void;
  /** The agent was rejected or removed: its runs end as failed, nothing is sent any more. */
  revoked(nodeId: NodeId): Promise<void>;
}
