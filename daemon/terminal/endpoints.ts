/** Accepts the terminal sockets of clients and agents: redeems the ticket, checks the hello, hands the socket to its session. */

import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { validator } from '../../src/kernel/validator.js';
import {
  AGENT_TERMINAL_PATH,
  TERMINAL_CLOSE,
  TERMINAL_LIMITS,
  TERMINAL_SUBPROTOCOL,
  TERMINAL_VERSION,
} from '../../src/terminal/limits.js';
import { AgentHelloSchema, ClientHelloSchema } from '../../src/terminal/notes.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import type { StreamRequest } from '../http/upgrades.js';
import type { LiveSession } from './session/live-session.js';
import { operatorParty, type SessionStore } from './session-store.js';
import { StreamServer } from './stream-server.js';
import { type SocketTimes, TerminalSocket } from './terminal-socket.js';
import type { Terminals } from './terminals.js';
import type { ClientGrant, Grant, Tickets } from './tickets.js';

const isClientHello = validator(ClientHelloSchema);

export class ClientEndpoint {
  private readonly options: EndpointOptions;
  private readonly streams = new StreamServer(TERMINAL_SUBPROTOCOL, 'a terminal');

  constructor(options: EndpointOptions) {
    this.options = options;
  }

  /**
   * Redeems the ticket and answers the upgrade.
   * @throws Fault `unauthenticated`, `terminal_not_found`, `bad_request` before anything is answered
   */
  open(given: StreamRequest): void {
    const { socket, address } = given;
    this.streams.requireOffered(given);
    const grant = this.admit(given);
    const session = this.options.terminals.find(grant.sessionId);
    if (session === null) {
      throw new Fault('terminal_not_found', 'the session is over', { hint: 'see what there is: orch term list' });
    }
    this.streams.accept(given, (opened) => this.serve({ opened, connection: socket, grant, session, address }));
  }

  /** Tells all clients to reconnect, because the orchestrator stops. */
  leave(): void {
    this.options.terminals.leave();
  }

  /** Number of open sockets. */
  get size(): number {
    return this.streams.size;
  }

  private admit({ ticket, sessionId, address }: StreamRequest): ClientGrant {
    const redeemed = this.options.tickets.redeem(ticket);
    const { grant } = redeemed;
    if (redeemed.ok && grant?.for === 'client' && grant.sessionId === sessionId) return grant;
    const reason = redeemed.ok ? 'a ticket for something else' : `a ticket that is ${redeemed.why}`;
    this.options.refusals.record({ reason, address, sessionId, grant, nodeId: null });
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
        if (!isClientHello.check(hello)) throw new Fault('protocol_violation', 'the peer sent a hello that is none');
        if (hello.version !== TERMINAL_VERSION) {
          return socket.close(TERMINAL_CLOSE.violation, `this orchestrator speaks version ${TERMINAL_VERSION}`);
        }
        terminals.join(session, { socket, grant, hello, address });
      },
      onClosed: () => session.left(socket),
    });
  }
}

/** An authenticated agent with an open WebSocket. */
export interface AgentPeer {
  readonly socket: WebSocket;
  /** Connection under the WebSocket. */
  readonly connection: Duplex;
  readonly nodeId: NodeId;
  readonly remoteAddress: string;
}

const isAgentHello = validator(AgentHelloSchema);

/** Creates the endpoint that the agent listener serves terminal sockets with. */
export const createAgentEndpoint = (options: EndpointOptions) => ({
  path: AGENT_TERMINAL_PATH,
  protocol: TERMINAL_SUBPROTOCOL,
  maxPayload: TERMINAL_LIMITS.frame,
  expects: (nodeId: NodeId) => options.terminals.expects(nodeId),
  accept: (peer: AgentPeer) => accept(peer, options),
});

function accept({ socket: raw, connection, nodeId, remoteAddress }: AgentPeer, options: EndpointOptions): void {
  const { clock, logger, terminals, times } = options;
  let session: LiveSession | null = null;
  const socket: TerminalSocket = new TerminalSocket({
    socket: raw,
    connection,
    clock,
    logger,
    ...(times ? { times } : {}),
    onHello: (value) => {
      session = hello(value);
    },
    onClosed: () => session?.detachAgent(socket),
  });

  function hello(value: unknown): LiveSession | null {
    if (!isAgentHello.check(value)) throw new Fault('protocol_violation', 'the peer sent a hello that is none');
    if (value.version !== TERMINAL_VERSION) throw new Fault('protocol_violation', 'the versions differ');
    const redeemed = options.tickets.redeem(value.ticket);
    const { grant } = redeemed;
    const isRight = grant?.for === 'agent' && grant.nodeId === nodeId && grant.sessionId === value.session_id;
    if (!redeemed.ok || !isRight) {
      const reason = redeemed.ok ? 'a ticket for something else' : `a ticket that is ${redeemed.why}`;
      options.refusals.record({ reason, address: remoteAddress, sessionId: value.session_id, grant, nodeId });
      socket.close(TERMINAL_CLOSE.ticket, 'the ticket is not good');
      return null;
    }
    const found = terminals.attachAgent(grant, socket, value);
    if (found === null) socket.close(TERMINAL_CLOSE.unknown, 'there is no such session');
    return found;
  }
}

interface EndpointOptions extends Pick<Core, 'clock' | 'logger'> {
  readonly terminals: Terminals;
  readonly tickets: Tickets;
  readonly refusals: Refusals;
  readonly times?: SocketTimes;
}

interface RefusalsOptions extends Pick<Core, 'logger'> {
  readonly store: SessionStore;
  readonly clock: Pick<Clock, 'monotonic'>;
}

interface RefusedSocket {
  readonly reason: string;
  readonly address: string | null;
  /** ID of the requested session; null when it is unknown. */
  readonly sessionId: string | null;
  /** Grant of the ticket; null for an unknown ticket. */
  readonly grant: Grant | null;
  /** Authenticated agent; null for the socket of a client. */
  readonly nodeId: NodeId | null;
}

/** Minimum milliseconds between two audit events of one address and session, and the number of remembered addresses. */
const EVERY = 60_000;
const MOST = 1_000;

/** Records refused sockets in the audit log, at a limited rate. */
export class Refusals {
  private readonly options: RefusalsOptions;
  private readonly lastRecorded = new Map<string, number>();

  constructor(options: RefusalsOptions) {
    this.options = options;
  }

  record({ reason, address, sessionId, grant, nodeId }: RefusedSocket): void {
    const { store, logger } = this.options;
    logger.warn('a socket of a terminal was refused', { session_id: sessionId, address, reason });
    if (!this.passes(`${grant?.sessionId ?? ''} ${address}`)) return;
    const about = nodeId ?? grant?.nodeId ?? null;
    const by =
      nodeId !== null
        ? ({ id: nodeId, name: nodeId, type: 'agent' } as const)
        : grant?.for === 'client'
          ? operatorParty(grant.operator)
          : SYSTEM;
    const facts = { id: grant?.sessionId ?? null, nodeId: (about ?? 'unknown') as NodeId, nodeName: null };
    store.refused(facts, { reason, by, address }).catch((error: unknown) => {
      logger.error('a refusal was not recorded', { reason: messageOf(error) });
    });
  }

  private passes(key: string): boolean {
    const now = this.options.clock.monotonic();
    const last = this.lastRecorded.get(key);
    if (last !== undefined && now - last < EVERY) return false;
    this.lastRecorded.delete(key);
    this.lastRecorded.set(key, now);
    for (const oldest of this.lastRecorded.keys()) {
      if (this.lastRecorded.size <= MOST) break;
      this.lastRecorded.delete(oldest);
    }
    return true;
  }
}
