/** Takes the sockets that agents open for single sessions: a ticket, the session it was given for, the agent it was given to. */
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { validator } from '../../src/kernel/validator.js';
import {
  AGENT_TERMINAL_PATH,
  TERMINAL_CLOSE,
  TERMINAL_LIMITS,
  TERMINAL_SUBPROTOCOL,
  TERMINAL_VERSION,
} from '../../src/terminal/limits.js';
import { AgentHelloSchema } from '../../src/terminal/notes.js';
import type { DoorOptions } from './door-options.js';
import type { LiveSession } from './session/live-session.js';
import { TerminalSocket } from './terminal-socket.js';

/** An agent that has proved its key, with an open WebSocket. */
export interface DoorPeer {
  readonly socket: WebSocket;
  /** What it runs over. */
  readonly connection: Duplex;
  readonly nodeId: NodeId;
  readonly remoteAddress: string;
}

const isHello = validator(AgentHelloSchema);

/** What the listener of agents needs to know of it. */
export const createAgentDoor = (options: DoorOptions) => ({
  path: AGENT_TERMINAL_PATH,
  protocol: TERMINAL_SUBPROTOCOL,
  maxPayload: TERMINAL_LIMITS.frame,
  expects: (nodeId: NodeId) => options.terminals.expects(nodeId),
  accept: (peer: DoorPeer) => accept(peer, options),
});

function accept({ socket: raw, connection, nodeId, remoteAddress }: DoorPeer, options: DoorOptions): void {
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
    onClosed: () => session?.agentLeft(socket),
  });

  function hello(value: unknown): LiveSession | null {
    if (!isHello.check(value)) throw new Fault('protocol_violation', 'the peer sent a hello that is none');
    if (value.version !== TERMINAL_VERSION) throw new Fault('protocol_violation', 'the versions differ');
    const redeemed = options.tickets.redeem(value.ticket);
    const { grant } = redeemed;
    const isRight = grant?.for === 'agent' && grant.nodeId === nodeId && grant.sessionId === value.session_id;
    if (!redeemed.ok || !isRight) {
      const reason = redeemed.ok ? 'a ticket for something else' : `a ticket that is ${redeemed.why}`;
      options.refusals.tell({ reason, address: remoteAddress, sessionId: value.session_id, grant, nodeId });
      socket.close(TERMINAL_CLOSE.ticket, 'the ticket is not good');
      return null;
    }
    const found = terminals.agentCame(grant, socket, value);
    if (found === null) socket.close(TERMINAL_CLOSE.unknown, 'there is no such session');
    return found;
  }
}
