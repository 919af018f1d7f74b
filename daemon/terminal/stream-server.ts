/** WebSockets of clients with one subprotocol, which answer upgrades of the API. */
import { type WebSocket, WebSocketServer } from 'ws';
import { Fault } from '../../src/kernel/fault.js';
import { TERMINAL_LIMITS } from '../../src/terminal/limits.js';
import type { StreamRequest } from '../http/upgrades.js';

export class StreamServer {
  private readonly server: WebSocketServer;
  private readonly subprotocol: string;
  private readonly noun: string;

  /** @param noun what a stream is, such as `a terminal` */
  constructor(subprotocol: string, noun: string) {
    this.subprotocol = subprotocol;
    this.noun = noun;
    this.server = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: TERMINAL_LIMITS.frame,
      handleProtocols: (offered) => (offered.has(subprotocol) ? subprotocol : false),
    });
  }

  /** Throws `bad_request` for a client that does not offer the subprotocol. */
  requireOffered({ request }: StreamRequest): void {
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    if (offered.includes(this.subprotocol)) return;
    throw new Fault('bad_request', `${this.noun} needs the WebSocket subprotocol of this version`, {
      hint: `ask for the subprotocol ${this.subprotocol}`,
    });
  }

  /** Answers the upgrade, and gives the open socket to the caller. */
  accept({ request, socket, head }: StreamRequest, onOpened: (socket: WebSocket) => void): void {
    this.server.handleUpgrade(request, socket, head, onOpened);
  }

  /** Number of open sockets. */
  get size(): number {
    return this.server.clients.size;
  }
}
