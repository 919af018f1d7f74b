/** What the room of terminals needs of whoever holds the connections to agents. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { OrchestratorMessage } from '../../src/wire/messages.js';

export interface TerminalLink {
  /** True while an approved agent is connected and has been told so. */
  isConnected(nodeId: NodeId): boolean;
  /** False when there is no such connection; nothing was sent then. */
  send(nodeId: NodeId, messages: readonly OrchestratorMessage[]): boolean;
}
