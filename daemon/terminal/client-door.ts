/** Takes the sockets of operators: the ticket is looked at before the upgrade is answered. */
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { Fault } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import { TERMINAL_CLOSE, TERMINAL_LIMITS, TERMINAL_SUBPROTOCOL, TERMINAL_VERSION } from '../../src/terminal/limits.js';
import { ClientHelloSchema } from '../../src/terminal/notes.js';
import type { StreamRequest } from '../http/upgrades.js';
import type { DoorOptions } from './door-options.js';
import type { LiveSession } from './session/live-session.js';
import { TerminalSocket } from './terminal-socket.js';
import type { ClientGrant } from './tickets.js';

const isHello = validator(ClientHelloSchema);

export class ClientDoor {
  private readonly options: DoorOptions;
  private readonly server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: TERMINAL_LIMITS.frame,
    handleProtocols: (offered) => (offered.has(TERMINAL_SUBPROTOCOL) ? TERMINAL_SUBPROTOCOL : false),
  });

  constructor(options: DoorOptions) {
    this.options = options;
  }

  /**
   * Answers the upgrade. The ticket is used up by then.
   * @throws Fault `unauthenticated`, `terminal_not_found`, `bad_request` while nothing was answered
   */
  open(given: StreamRequest): void {
    const { request, socket, head, address } = given;
    const offered = (request.headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
    if (!offered.includes(TERMINAL_SUBPROTOCOL)) {
      throw new Fault('bad_request', 'a terminal needs the WebSocket subprotocol of this version', {
        hint: `ask for the subprotocol ${TERMINAL_SUBPROTOCOL}`,
      });
    }
    const grant = this.admit(given);
    const session = this.options.terminals.find(grant.sessionId);
    if (session === null) {
      throw new Fault('terminal_not_found', 'the session is over', { hint: 'see what there is: orch term list' });
    }
    this.server.handleUpgrade(request, socket, head, (opened) =>
      this.serve({ opened, connection: socket, grant, session, address }),
    );
  }

  /** The orchestrator stops: everybody is told to come back. */
  leave(): void {
    this.options.terminals.leave();
  }

  /** How many sockets are open. */
  get size(): number {
    return this.server.clients.size;
  }

  private admit({ ticket, sessionId, address }: StreamRequest): ClientGrant {
    const redeemed = this.options.tickets.redeem(ticket);
    const { grant } = redeemed;
    if (redeemed.ok && grant?.for === 'client' && grant.sessionId === sessionId) return grant;
    const reason = redeemed.ok ? 'a ticket for something else' : `a ticket that is ${redeemed.why}`;
    this.options.refusals.tell({ reason, address, sessionId, grant, nodeId: null });
    throw new Fault('unauthenticated', 'the ticket is unknown, used up or too old', {
      hint: 'ask for a new one: POST …/attach',
    });
  }

  private serve(opened: {
    readonly opened: WebSocket;
    readonly connection: Duplex;
    readonly grant: ClientGrant;
    readonly session: LiveSession;
    readonly address: string | null;
  }): void {
    const { clock, logger, terminals, times } = this.options;
    const { grant, session, address } = opened;
    const socket: TerminalSocket = new TerminalSocket({
      socket: opened.opened,
      connection: opened.connection,
      clock,
      logger,
      ...(times ? { times } : {}),
      onHello: (hello) => {
        if (!isHello.check(hello)) throw new Fault('protocol_violation', 'the peer sent a hello that is none');
        if (hello.version !== TERMINAL_VERSION) {
          return socket.close(TERMINAL_CLOSE.violation, `this orchestrator speaks version ${TERMINAL_VERSION}`);
        }
        terminals.join(session, { socket, grant, hello, address });
      },
      onClosed: () => session.left(socket),
    });
  }
}
