/** The connections that this process holds; all other data about agents is in the store. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { AgentMessageOf, OrchestratorMessage } from '../../src/wire/messages.js';
import type { AgentConnection } from './agent-connection.js';

/** Holds at most one connection per agent, from its hello until it ends. */
export class ConnectionRegistry implements AgentLink {
  private readonly connections = new Map<NodeId, AgentConnection>();
  /** Why nothing may be sent to an agent although it may be connected, by agent. */
  private readonly holds = new Map<NodeId, string>();

  get(nodeId: NodeId): AgentConnection | undefined {
    return this.connections.get(nodeId);
  }

  /**
   * Adds a connection and terminates the one it replaces, because a connection outside the registry could not be
   * revoked.
   */
  add(connection: AgentConnection): void {
    this.connections.get(connection.nodeId)?.terminate();
    this.connections.set(connection.nodeId, connection);
  }

  /** Removes a connection unless another has replaced it. Returns true when it was removed. */
  remove(connection: AgentConnection): boolean {
    if (this.connections.get(connection.nodeId) !== connection) return false;
    return this.connections.delete(connection.nodeId);
  }

  /** Returns true while the agent is connected and has received its status, approved or pending. */
  has(nodeId: NodeId): boolean {
    const state = this.connections.get(nodeId)?.state;
    return state === 'approved' || state === 'pending';
  }

  isConnected(nodeId: NodeId): boolean {
    return this.connections.get(nodeId)?.state === 'approved' && !this.holds.has(nodeId);
  }

  /** Holds back what would be sent to an agent; null ends that. */
  hold(nodeId: NodeId, why: string | null): void {
    if (why === null) this.holds.delete(nodeId);
    else this.holds.set(nodeId, why);
  }

  holdOf(nodeId: NodeId): string | null {
    return this.holds.get(nodeId) ?? null;
  }

  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean {
    const connection = this.connections.get(nodeId);
    if (connection?.state !== 'approved') return false;
    return connection.sendAll(messages);
  }

  /** Returns false for an agent that is not connected, or whose protocol version lacks messages of this type. */
  supports(nodeId: NodeId, type: OrchestratorMessage['type']): boolean {
    return this.connections.get(nodeId)?.supports(type) ?? false;
  }

  /** Returns the approved agents that are connected. */
  *connected(): Iterable<NodeId> {
    for (const [nodeId, { state }] of this.connections) if (state === 'approved') yield nodeId;
  }

  /** Pings connections that are due, and terminates those that were silent for too long. */
  heartbeat(): void {
    for (const connection of this.connections.values()) connection.beat();
  }
}

/** Connections to agents, as the engine uses them. */
export interface AgentLink {
  /** Returns true while an approved agent is connected and has received that status, and is not held. */
  isConnected(nodeId: NodeId): boolean;
  /** Returns why nothing may be sent to an agent although it may be connected; null without a reason. */
  holdOf(nodeId: NodeId): string | null;
  /**
   * Sends messages in order to an approved, connected agent. Returns false when there is no such connection, and then
   * sends nothing.
   */
  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean;
}

/** Messages of approved agents that the engine handles. */
export type EngineMessage = AgentMessageOf<
  'inventory' | 'run_accepted' | 'run_awaiting' | 'run_confirm' | 'run_results' | 'run_finished'
>;

/** Events of the connections for the engine. */
export interface AgentTraffic {
  /** Handles a message of an approved agent. Throwing `protocol_violation` closes its connection. */
  receive(nodeId: NodeId, message: EngineMessage): Promise<void>;
  /** Notes that the connection is closed; runs on the agent continue there. */
  disconnected(nodeId: NodeId): void;
  /** Fails the runs of a rejected or removed agent, and sends nothing more. */
  revoked(nodeId: NodeId): Promise<void>;
}
