/** Accepts the sockets of forwards from clients and agents: redeems the ticket, checks the hello, attaches the socket. */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { validator } from '../../src/kernel/validator.js';
import { AGENT_FORWARD_PATH, FORWARD_SUBPROTOCOL, FORWARD_VERSION } from '../../src/terminal/forward-limits.js';
import { TERMINAL_CLOSE, TERMINAL_LIMITS } from '../../src/terminal/limits.js';
import { ForwardHelloSchema } from '../../src/terminal/notes.js';
import type { Core } from '../core/core.js';
import type { StreamRequest } from '../http/upgrades.js';
import type { AgentPeer } from '../terminal/endpoints.js';
import { StreamServer } from '../terminal/stream-server.js';
import { TerminalSocket } from '../terminal/terminal-socket.js';
import type { Forwards } from './forwards.js';
import type { LiveForward } from './live-forward.js';

interface EndpointOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly forwards: Forwards;
}

const isHello = validator(ForwardHelloSchema);

export class ForwardClientEndpoint {
  private readonly options: EndpointOptions;
  private readonly streams = new StreamServer(FORWARD_SUBPROTOCOL, 'a forward');

  constructor(options: EndpointOptions) {
    this.options = options;
  }

  /** Redeems the ticket and answers the upgrade. Throws `unauthenticated`, `bad_request` before anything is answered. */
  open(given: StreamRequest): void {
    const { socket, sessionId, ticket, address } = given;
    this.streams.requireOffered(given);
    const { forwards, logger } = this.options;
    const redeemed = forwards.tickets.redeem(ticket);
    const { grant } = redeemed;
    const live = forwards.find(sessionId);
    if (!redeemed.ok || grant?.for !== 'client' || grant.sessionId !== sessionId || live === null) {
      logger.warn('a socket of a forward was refused', { session_id: sessionId, address });
      throw new Fault('unauthenticated', 'the ticket is unknown, used up or too old', {
        hint: 'open another forward',
      });
    }
    this.streams.accept(given, (opened) => serve({ opened, connection: socket, live }, this.options));
  }

  /** Ends all forwards, because the orchestrator stops. */
  leave(): void {
    this.options.forwards.leave();
  }

  /** Number of open sockets. */
  get size(): number {
    return this.streams.size;
  }
}

interface ClientSocket {
  readonly opened: WebSocket;
  readonly connection: Duplex;
  readonly live: LiveForward;
}

function serve({ opened, connection, live }: ClientSocket, { clock, logger }: EndpointOptions): void {
  const socket: TerminalSocket = new TerminalSocket({
    socket: opened,
    connection,
    clock,
    logger,
    onHello: (value) => {
      checkHello(value);
      if (!live.attach('client', socket)) socket.close(TERMINAL_CLOSE.unknown, 'the forward has ended');
    },
    onClosed: () => live.detached(socket),
    onDrain: () => live.drained('client'),
  });
}

/** Creates the endpoint that the agent listener serves forwards with. */
export const createForwardAgentEndpoint = (options: EndpointOptions) => ({
  path: AGENT_FORWARD_PATH,
  protocol: FORWARD_SUBPROTOCOL,
  maxPayload: TERMINAL_LIMITS.frame,
  expects: (nodeId: NodeId) => options.forwards.expects(nodeId),
  accept: (peer: AgentPeer) => accept(peer, options),
});

function accept({ socket: raw, connection, nodeId, remoteAddress }: AgentPeer, options: EndpointOptions): void {
  const { clock, logger, forwards } = options;
  let live: LiveForward | null = null;
  const socket: TerminalSocket = new TerminalSocket({
    socket: raw,
    connection,
    clock,
    logger,
    onHello: (value) => {
      const { session_id: id, ticket } = checkHello(value);
      const redeemed = forwards.tickets.redeem(ticket);
      const { grant } = redeemed;
      const isRight = redeemed.ok && grant?.for === 'agent' && grant.nodeId === nodeId && grant.sessionId === id;
      live = isRight ? forwards.find(id) : null;
      if (live?.attach('agent', socket)) return;
      logger.warn('a socket of a forward was refused', { session_id: id, address: remoteAddress, node_id: nodeId });
      socket.close(TERMINAL_CLOSE.ticket, 'the ticket is not good');
    },
    onClosed: () => live?.detached(socket),
    onDrain: () => live?.drained('agent'),
  });
}

function checkHello(value: unknown) {
  if (!isHello.check(value)) throw new Fault('protocol_violation', 'the peer sent a hello that is none');
  if (value.version !== FORWARD_VERSION) throw new Fault('protocol_violation', 'the versions differ');
  return value;
}
