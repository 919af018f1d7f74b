/** What the room of terminals needs of whoever holds the connections to agents. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';

export interface TerminalLink {
  /** True while an approved agent is connected and has been told so. */
  isConnected(nodeId: NodeId): boolean;
  /** False for an agent that is not connected, or is too old for messages of this type. */
  knows(nodeId: NodeId, type: OrchestratorMessage['type']): boolean;
  /** False when there is no such connection; nothing was sent then. */
  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean;
}
