/** The engine's view of the connections to agents, and the fleet's view of the engine. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { AgentMessage, OrchestratorMessage } from '../../src/wire/messages.js';

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
