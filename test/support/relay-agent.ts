/** An agent as the orchestrator sees it: answers on the link, dials back, sends the real frames. */

import { once } from 'node:events';
import { type ClientOptions, WebSocket } from 'ws';
import { nodeIdOf } from '../../src/identity/key-object.js';
import type { NodeId } from '../../src/kernel/ids.js';
import { ackFrame, type Frame, jsonFrame, placeFrame, pongFrame, readFrame } from '../../src/terminal/frames.js';
import { AGENT_TERMINAL_PATH, TERMINAL_SUBPROTOCOL } from '../../src/terminal/limits.js';
import { LINK_ALPN } from '../../src/wire/limits.js';
import type { OrchestratorMessage, OrchestratorMessageOf } from '../../src/wire/messages.js';
import { credentialsOf, type Identity } from './identity.js';
import { outputFrame } from './terminal-server.js';
import { until } from './until.js';

export interface AgentSession {
  readonly id: string;
  /** Everything that its program has written. */
  output: Buffer;
  /** The messages that are forgotten because the orchestrator has them. */
  forgotten: number;
  sent: number;
  limit: number;
  input: Buffer;
  socket: WebSocket | null;
  closed: { code: number; reason: string } | null;
  readonly frames: Frame[];
  exit: object | null;
  /** It has the order to end its program. */
  isClosed: boolean;
}

export class FakeAgent {
  readonly sessions = new Map<string, AgentSession>();
  readonly messages: OrchestratorMessage[] = [];
  /** The answer to the next open. */
  refusal: { code: string; message: string } | null = null;
  answers = true;
  dials = true;
  /** The members of its hellos that are not the truth. */
  claims: object = {};
  /** Program side takes input as it comes. */
  readsInput = true;
  /** It says where its input stands; an older version does not. */
  places = true;
  send: (message: { type: 'terminal_answer' | 'terminals'; [key: string]: unknown }) => void = () => undefined;

  readonly identity: Identity;
  private readonly port: () => number;

  constructor(identity: Identity, port: () => number) {
    this.identity = identity;
    this.port = port;
  }

  get nodeId(): NodeId {
    return nodeIdOf(this.identity.publicKey);
  }

  /** A message of the orchestrator on the link. */
  receive(message: OrchestratorMessage): void {
    this.messages.push(message);
    if (message.type === 'terminal_open') this.open(message);
    if (message.type === 'terminal_attach') this.dialLater(message.session_id, message.ticket);
    if (message.type === 'terminal_close') {
      const session = this.sessions.get(message.session_id);
      if (session) session.isClosed = true;
      session?.socket?.close();
      this.sessions.delete(message.session_id);
    }
  }

  list(): void {
    const sessions = [...this.sessions.values()].map(({ id, socket }) => ({
      session_id: id,
      attached: socket !== null,
    }));
    this.send({ type: 'terminals', sessions });
  }

  get(id: string): AgentSession {
    const session = this.sessions.get(id);
    if (session === undefined) throw new Error(`the agent has no session ${id}`);
    return session;
  }

  private open({ session_id: id, ticket, kind }: OrchestratorMessageOf<'terminal_open'>): void {
    if (!this.answers) return;
    const refused = { session_id: id, user: null, shell: null, error: this.refusal };
    if (this.refusal) {
      this.send({ type: 'terminal_answer', ...refused });
      return;
    }
    this.sessions.set(id, {
      id,
      output: Buffer.alloc(0),
      forgotten: 0,
      sent: 0,
      limit: 0,
      input: Buffer.alloc(0),
      socket: null,
      closed: null,
      frames: [],
      exit: null,
      isClosed: false,
    });
    this.send({
      type: 'terminal_answer',
      session_id: id,
      user: 'root',
      shell: kind === 'shell' ? '/bin/sh' : null,
      error: null,
    });
    if (this.dials) this.dialLater(id, ticket);
  }

  /** Where the orchestrator has lost interest meanwhile, nothing comes of it. */
  private dialLater(id: string, ticket: string): void {
    this.dial(id, ticket).catch(() => undefined);
  }

  /** Opens the socket of a session; the ticket may be any. */
  async dial(id: string, ticket: string, identity = this.identity): Promise<WebSocket> {
    const session = this.get(id);
    const tls = { ...credentialsOf(identity.privateKey), ALPNProtocols: [LINK_ALPN], rejectUnauthorized: false };
    const options: ClientOptions = { ...tls, perMessageDeflate: false };
    const socket = new WebSocket(`wss://127.0.0.1:${this.port()}${AGENT_TERMINAL_PATH}`, TERMINAL_SUBPROTOCOL, options);
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer) => this.take(session, socket, readFrame(data)));
    socket.on('close', (code, reason) => {
      session.closed = { code, reason: reason.toString() };
      if (session.socket !== socket) return;
      session.socket = null;
      if (code === 1000) this.sessions.delete(id);
    });
    await once(socket, 'open');
    session.socket = socket;
    session.limit = 0;
    const { output, forgotten: kept_from, input } = session;
    socket.send(
      jsonFrame('hello', {
        version: 1,
        session_id: id,
        ticket,
        produced: output.length,
        kept_from,
        taken: input.length,
        ...this.claims,
      }),
    );
    return socket;
  }

  /** Its program writes that, and ends when asked to. */
  write(id: string, text: string | Buffer): void {
    const session = this.get(id);
    session.output = Buffer.concat([session.output, Buffer.from(text)]);
    this.pump(session);
  }

  end(id: string, exit: object = { code: 0, signal: null, reason: 'exited' }): void {
    const session = this.get(id);
    session.exit = { ...exit, final_offset: session.output.length };
    this.pump(session);
  }

  /** Says that it has input up to there alone, and takes no more until the orchestrator begins anew. */
  ask(session: AgentSession, place: number): void {
    session.input = session.input.subarray(0, place);
    session.socket?.send(placeFrame(place));
  }

  async attached(id: string): Promise<AgentSession> {
    await until(() => (this.sessions.get(id)?.limit ?? 0) > 0, 'the agent may send');
    return this.get(id);
  }

  private take(session: AgentSession, socket: WebSocket, frame: Frame): void {
    session.frames.push(frame);
    switch (frame.type) {
      case 'ping':
        socket.send(pongFrame(frame.t));
        return;
      case 'ack':
        if (session.limit === 0) {
          session.sent = frame.consumed;
          if (this.places) socket.send(placeFrame(session.input.length));
          socket.send(ackFrame(session.input.length, session.input.length + 1024 * 1024));
        }
        session.forgotten = Math.max(session.forgotten, frame.consumed);
        session.limit = Math.max(session.limit, frame.limit);
        this.pump(session);
        return;
      case 'input': {
        const { offset, bytes } = frame;
        if (offset > session.input.length || offset + bytes.length <= session.input.length) return;
        session.input = Buffer.concat([session.input, bytes.subarray(session.input.length - offset)]);
        if (this.readsInput) socket.send(ackFrame(session.input.length, session.input.length + 1024 * 1024));
      }
    }
  }

  private pump(session: AgentSession): void {
    const { socket } = session;
    if (socket === null || session.limit === 0 || socket.readyState !== WebSocket.OPEN) return;
    while (session.sent < Math.min(session.output.length, session.limit)) {
      const end = Math.min(session.output.length, session.limit, session.sent + 64 * 1024);
      socket.send(outputFrame('out', session.sent, session.output.subarray(session.sent, end)));
      session.sent = end;
    }
    if (session.exit !== null && session.sent === session.output.length) {
      socket.send(jsonFrame('exit', session.exit));
      session.exit = null;
    }
  }
}
