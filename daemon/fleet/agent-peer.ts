/** The other end of an agent connection, as its handshake proves it. */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { NodeId, PublicKeyHex } from '../../src/kernel/ids.js';
import type { FrameLimit } from './frame-limit.js';

/** An agent's open connection. Its identity comes only from the key proved in the handshake. */
export interface AgentPeer {
  readonly socket: WebSocket;
  /** The stream below the WebSocket. */
  readonly transport: Duplex;
  readonly publicKey: PublicKeyHex;
  readonly nodeId: NodeId;
  readonly remoteAddress: string;
  /** Lowers the frame limit below the listener's own; null restores that. */
  readonly limit: FrameLimit;
}
