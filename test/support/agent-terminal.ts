/** The orchestrator's end of terminals: a real agent port that speaks the frames as a test makes it. */

import { existsSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import type { TerminalSettings } from '../../src/agent/terminal/policy.js';
import type { TerminalReport, Terminals, TerminalsOptions } from '../../src/agent/terminal/terminals.js';
import { loadOrCreateKey } from '../../src/identity/private-key.js';
import { type LogFields, type Logger, silentLogger } from '../../src/kernel/logger.js';
import { validator } from '../../src/kernel/validator.js';
import { AGENT_DEFAULTS } from '../../src/settings/agent.js';
import { type Exit, ExitSchema } from '../../src/terminal/exit.js';
import {
  ackFrame,
  type Frame,
  inputFrame,
  type OutputStream,
  pongFrame,
  readFrame,
} from '../../src/terminal/frames.js';
import {
  AGENT_TERMINAL_PATH,
  TERMINAL_CLOSE,
  TERMINAL_LIMITS,
  TERMINAL_SUBPROTOCOL,
} from '../../src/terminal/limits.js';
import { type AgentHello, AgentHelloSchema } from '../../src/terminal/notes.js';
import { agentDecoder, encode } from '../../src/wire/codec.js';
import { LINK_PATH } from '../../src/wire/limits.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../src/wire/messages.js';
import { place, ScriptedOrchestrator } from './agent.js';
import { credentialsOf, type Identity, newIdentity } from './identity.js';
import { until } from './orch.js';
import { TEST_SHELL } from './test-shell.js';

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

/** The orchestrator's state of a session over all of its sockets. */
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
    // Unacknowledged messages are sent again.
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
      () => `${JSON.stringify(text)} is shown, not ${JSON.stringify(this.text().slice(-400))}`,
    );
  }

  async ended(): Promise<Exit> {
    await until(() => this.exit !== null, 'the exit is reported');
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

/** The agent's terminals with their real process, as they are built, and the orchestrator's end of them. */
const built = fileURLToPath(new URL('../../dist/src/agent/terminal/terminals.js', import.meta.url));
const decode = agentDecoder();

export const sessionId = (number: number): string => `01K${String(number).padStart(23, '0')}`;

export class AgentEnd {
  readonly orchestrator: OrchestratorEnd;
  readonly terminals: Terminals;
  readonly dataDir: string;
  readonly log: { readonly level: string; readonly message: string; readonly fields: LogFields | undefined }[] = [];
  readonly authLog: string[] = [];
  /** Held against the protocol. */
  readonly reports: TerminalReport[] = [];
  settings: TerminalSettings;
  /** Answers a list of sessions as the orchestrator does: those without a socket get a ticket. */
  reattaches = true;
  private number = 0;

  private constructor(
    orchestrator: OrchestratorEnd,
    create: typeof Terminals,
    dataDir: string,
    more: Partial<TerminalsOptions>,
  ) {
    this.orchestrator = orchestrator;
    this.dataDir = dataDir;
    this.settings = { ...AGENT_DEFAULTS, 'remote_terminal.enabled': true, 'remote_terminal.shell': TEST_SHELL };
    const at = (level: string) => (message: string, fields?: LogFields) =>
      void this.log.push({ level, message, fields });
    const logger: Logger = { ...silentLogger, info: at('info'), warn: at('warn'), error: at('error') };
    this.terminals = new create({
      dataDir,
      logger,
      settings: () => this.settings,
      authLog: (line) => void this.authLog.push(line),
      ...more,
    });
    this.terminals.setAddress({ host: '127.0.0.1', port: orchestrator.port, key: orchestrator.identity.publicKey });
    this.terminals.subscribe((report) => this.hear(report));
    onTestFinished(async () => {
      await this.terminals.stop();
      expect(orchestrator.complaints).toEqual([]);
    });
  }

  static async start(dataDir = place(), more: Partial<TerminalsOptions> = {}): Promise<AgentEnd> {
    if (!existsSync(built)) throw new Error('build first: npx tsc -b');
    const orchestrator = await new OrchestratorEnd().start();
    loadOrCreateKey(join(dataDir, 'identity.key'));
    const { Terminals: create } = (await import(
      pathToFileURL(built).href
    )) as typeof import('../../src/agent/terminal/terminals.js');
    return new AgentEnd(orchestrator, create, dataDir, more);
  }

  /** Asks for a session; `window` as of the relay. */
  open(
    more: Partial<OrchestratorMessageOf<'terminal_open'>> = {},
    window?: number | null,
  ): { id: string; relay: Relay } {
    this.number += 1;
    const id = more.session_id ?? sessionId(this.number);
    const relay = window === undefined ? new Relay() : new Relay(window);
    this.orchestrator.relays.set(id, relay);
    this.terminals.handle({
      type: 'terminal_open',
      session_id: id,
      ticket: this.orchestrator.ticket(),
      operator: 'ada',
      kind: 'shell',
      cols: 80,
      rows: 24,
      term: 'xterm',
      shell: null,
      command: null,
      timeout_secs: null,
      stdin: false,
      ...more,
    });
    return { id, relay };
  }

  /** Runs a command on pipes. */
  exec(command: readonly string[], more: Partial<OrchestratorMessageOf<'terminal_open'>> = {}, window?: number | null) {
    return this.open({ kind: 'exec', command: [...command], ...more }, window);
  }

  close(id: string): void {
    this.terminals.handle({ type: 'terminal_close', session_id: id });
  }

  /** The answer to a request. */
  async answer(id: string): Promise<AgentMessageOf<'terminal_answer'>> {
    const find = () => this.reports.find((report) => report.type === 'terminal_answer' && report.session_id === id);
    await until(() => find() !== undefined, `${id} is answered`);
    return find() as AgentMessageOf<'terminal_answer'>;
  }

  /** Resolves when the agent holds no session. */
  empty(): Promise<void> {
    return until(() => this.terminals.list().sessions.length === 0, 'all sessions are forgotten');
  }

  private hear(report: TerminalReport): void {
    decode(encode(report));
    this.reports.push(report);
    if (report.type !== 'terminals' || !this.reattaches) return;
    for (const { session_id, attached } of report.sessions) {
      if (attached) continue;
      const ticket = this.orchestrator.ticket();
      this.terminals.handle({ type: 'terminal_attach', session_id, ticket });
    }
  }
}
