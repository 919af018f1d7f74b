/** The orchestrator's end of terminals: a real agent port that speaks the frames as a test makes it. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { onTestFinished } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { validator } from '../../../../src/kernel/validator.js';
import { type Exit, ExitSchema } from '../../../../src/terminal/exit.js';
import {
  ackFrame,
  type Frame,
  inputFrame,
  type OutputStream,
  pongFrame,
  readFrame,
} from '../../../../src/terminal/frames.js';
import {
  AGENT_TERMINAL_PATH,
  TERMINAL_CLOSE,
  TERMINAL_LIMITS,
  TERMINAL_SUBPROTOCOL,
} from '../../../../src/terminal/limits.js';
import { type AgentHello, AgentHelloSchema } from '../../../../src/terminal/notes.js';
import { LINK_PATH } from '../../../../src/wire/limits.js';
import { type Identity, newIdentity } from '../../../identity/keys.js';
import { credentialsOf } from '../../../identity/tls.js';
import { until } from '../../../support/orch.js';
import { ScriptedOrchestrator } from '../../support/scripted-orchestrator.js';

const helloSchema = validator(AgentHelloSchema);
const exitSchema = validator(ExitSchema);

/** One socket of an agent. */
export class AgentSocket {
  readonly frames: Frame[] = [];
  readonly hello: AgentHello;
  /** Code that it was closed with; null while it is open. */
  closed: number | null = null;
  private readonly socket: WebSocket;

  constructor(socket: WebSocket, hello: AgentHello) {
    this.socket = socket;
    this.hello = hello;
    socket.on('close', (code) => {
      this.closed = code;
    });
  }

  send(frame: Buffer): void {
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(frame);
  }

  close(code: number = TERMINAL_CLOSE.done): void {
    this.socket.close(code);
  }

  /** As when the network is gone. */
  cut(): void {
    this.socket.terminate();
  }

  stopReading(): void {
    this.socket.pause();
  }

  goOnReading(): void {
    this.socket.resume();
  }
}

/** What the orchestrator keeps of a session over all of its sockets. */
export class Relay {
  socket: AgentSocket | null = null;
  readonly sockets: AgentSocket[] = [];
  /** Output by its offsets. */
  received = 0;
  readonly pieces: { readonly stream: OutputStream; readonly bytes: Buffer }[] = [];
  exit: Exit | null = null;
  /** Acknowledges by itself, with so much more allowed; null when the test does it. */
  window: number | null;
  /** Else it allows so much once for each socket. */
  acknowledges = true;
  /** Lets go of the session when it has the exit. */
  closes = true;
  /** Of input: sent up to here, acknowledged up to here, allowed up to here. */
  inputSent = 0;
  inputTaken = 0;
  inputLimit = 0;
  private unsent: Buffer[] = [];
  private unsentFrom = 0;

  constructor(window: number | null = TERMINAL_LIMITS.mostWindow) {
    this.window = window;
  }

  attached(socket: AgentSocket): void {
    this.socket = socket;
    this.sockets.push(socket);
    if (this.window !== null) socket.send(ackFrame(this.received, this.received + this.window));
    // What is not acknowledged is sent again.
    this.inputSent = socket.hello.taken;
    this.pumpInput();
  }

  hear(frame: Frame): void {
    switch (frame.type) {
      case 'output': {
        if (frame.offset !== this.received) throw new Error(`output at ${frame.offset} where ${this.received} is next`);
        this.pieces.push({ stream: frame.stream, bytes: Buffer.from(frame.bytes) });
        this.received += frame.bytes.length;
        if (this.window !== null && this.acknowledges) {
          this.socket?.send(ackFrame(this.received, this.received + this.window));
        }
        return;
      }
      case 'ack':
        this.inputTaken = frame.consumed;
        this.inputLimit = frame.limit;
        this.pumpInput();
        return;
      case 'exit':
        if (!exitSchema.check(frame.value)) throw new Error('this is no exit');
        this.exit = frame.value;
        if (this.closes) this.socket?.close();
        return;
      case 'ping':
        this.socket?.send(pongFrame(frame.t));
    }
  }

  /** Types it, now or as soon as there is a socket and room. */
  type(bytes: Buffer | string): void {
    this.unsent.push(Buffer.from(bytes));
    this.pumpInput();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.pieces.map(({ bytes }) => bytes));
  }

  text(stream?: OutputStream): string {
    const pieces = this.pieces.filter((piece) => stream === undefined || piece.stream === stream);
    return Buffer.concat(pieces.map(({ bytes }) => bytes))
      .toString('utf8')
      .replaceAll('\r\n', '\n');
  }

  shows(text: string): Promise<void> {
    return until(
      () => this.text().includes(text),
      `${JSON.stringify(text)} is shown, not ${JSON.stringify(this.text().slice(-400))}`,
    );
  }

  async ended(): Promise<Exit> {
    await until(() => this.exit !== null, 'the exit is told');
    if (this.exit === null) throw new Error('no exit');
    return this.exit;
  }

  private pumpInput(): void {
    const all = Buffer.concat(this.unsent);
    this.unsent = [all.subarray(this.inputTaken - this.unsentFrom)];
    this.unsentFrom = this.inputTaken;
    const end = this.unsentFrom + (this.unsent[0]?.length ?? 0);
    while (this.socket !== null && this.socket.closed === null && this.inputSent < Math.min(end, this.inputLimit)) {
      const from = this.inputSent - this.unsentFrom;
      const bytes = (this.unsent[0] as Buffer).subarray(from, from + TERMINAL_LIMITS.input);
      this.socket.send(inputFrame(this.inputSent, bytes));
      this.inputSent += bytes.length;
    }
  }
}

export class OrchestratorEnd {
  readonly identity: Identity = newIdentity();
  readonly relays = new Map<string, Relay>();
  /** Tickets that are good, once. */
  readonly tickets = new Set<string>();
  /** Whatever went against the protocol. */
  readonly complaints: string[] = [];
  /** Links of agents, in the order in which they came. */
  readonly links: ScriptedOrchestrator[] = [];
  port = 0;

  async start(): Promise<this> {
    const sockets = new Set<Duplex>();
    const server = createServer({
      ...credentialsOf(this.identity.privateKey),
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['orch-agent/1'],
    });
    const websockets = new WebSocketServer({
      noServer: true,
      perMessageDeflate: false,
      maxPayload: TERMINAL_LIMITS.frame,
      handleProtocols: (offered) => (offered.has(TERMINAL_SUBPROTOCOL) ? TERMINAL_SUBPROTOCOL : false),
    });
    server.on('connection', (socket) => {
      sockets.add(socket);
      socket.on('error', () => undefined);
    });
    server.on('tlsClientError', (_, socket) => socket.destroy());
    server.on('upgrade', (request, socket, head) => {
      socket.on('error', () => undefined);
      if (request.url === LINK_PATH) {
        websockets.handleUpgrade(request, socket, head, (link) => {
          this.links.push(new ScriptedOrchestrator(link));
        });
        return;
      }
      if (request.url !== AGENT_TERMINAL_PATH) {
        socket.destroy();
        return;
      }
      websockets.handleUpgrade(request, socket, head, (accepted) => this.accept(accepted));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.port = (server.address() as AddressInfo).port;
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    return this;
  }

  ticket(): string {
    const ticket = `ticket-${this.tickets.size}-${Math.random().toString(36).slice(2)}-padded`;
    this.tickets.add(ticket);
    return ticket;
  }

  relay(sessionId: string): Relay {
    const found = this.relays.get(sessionId);
    if (found === undefined) throw new Error(`no session ${sessionId}`);
    return found;
  }

  private accept(socket: WebSocket): void {
    let agent: AgentSocket | null = null;
    let relay: Relay | undefined;
    socket.on('error', () => undefined);
    socket.on('message', (data: Buffer, binary) => {
      try {
        if (!binary) throw new Error('text came');
        const frame = readFrame(data);
        if (agent !== null) {
          agent.frames.push(frame);
          if (relay?.socket === agent) relay.hear(frame);
          return;
        }
        if (frame.type !== 'hello' || !helloSchema.check(frame.value)) throw new Error('this is no hello');
        const hello = frame.value;
        if (!this.tickets.delete(hello.ticket)) {
          socket.close(TERMINAL_CLOSE.ticket);
          return;
        }
        relay = this.relays.get(hello.session_id);
        if (relay === undefined) throw new Error(`the session ${hello.session_id} is not known`);
        agent = new AgentSocket(socket, hello);
        relay.attached(agent);
      } catch (error) {
        this.complaints.push(String(error));
        socket.close(TERMINAL_CLOSE.violation);
      }
    });
  }
}
