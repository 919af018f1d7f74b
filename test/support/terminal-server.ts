/** The orchestrator's side of a terminal for tests of the client: real TLS, real WebSockets, and every fault on demand. */
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { type WebSocket, WebSocketServer } from 'ws';
import { API_BASE } from '../../src/contract/contract.js';
import { FAULTS } from '../../src/contract/faults.js';
import { selfSignedP256 } from '../../src/identity/certificate.js';
import { spkiFingerprint } from '../../src/identity/fingerprint.js';
import { generateKey } from '../../src/identity/private-key.js';
import type { FaultCode } from '../../src/kernel/fault.js';
import { Backlog } from '../../src/terminal/backlog.js';
import type { Exit } from '../../src/terminal/exit.js';
import {
  ackFrame,
  type Frame,
  jsonFrame,
  type OutputStream,
  outputHead,
  placeFrame,
  pongFrame,
  readFrame,
  snapshotFrame,
} from '../../src/terminal/frames.js';
import { TERMINAL_LIMITS, TERMINAL_SUBPROTOCOL } from '../../src/terminal/limits.js';
import type { ClientHello, ClientNote, ServerNote, TerminalMode } from '../../src/terminal/notes.js';

export const SESSION = '01JQ2Z6T0V5X8Y4M3N7P9R1S2T';
export const NODE = 'a'.repeat(32);
const SECRET = 'the-secret-of-this-client';

export interface TerminalServer {
  readonly url: string;
  readonly fingerprint: string;
  readonly session: ScriptedSession;
  /** Requests so far, as `METHOD path`. */
  readonly requests: string[];
  /** Problems instead of answers, one request each. */
  readonly problems: FaultCode[];
  /** The body of each attach. */
  readonly attaches: unknown[];
  stop(): Promise<void>;
}

/** A session whose program is the test. */
export class ScriptedSession {
  readonly output = new Backlog();
  /** Input that its program has got. */
  input = Buffer.alloc(0);
  /** How much input is taken beyond what is acknowledged. */
  inputLimit = TERMINAL_LIMITS.inputBacklog;
  sizes: string[] = [];
  signals: string[] = [];
  notes: ClientNote[] = [];
  hellos: ClientHello[] = [];
  eof = false;
  /** How often its client began anew with its input. */
  begun = 0;
  mode: TerminalMode = 'write';
  recorded = true;
  exit: Exit | null = null;
  over = false;
  onInput: (bytes: Buffer) => void = () => {};
  onNote: (note: ClientNote) => void = () => {};
  onResize: () => void = () => {};
  /** Cuts the next connection after so many bytes of output; frames may be sent twice or in pieces before. */
  cuts: number[] = [];
  /** Sends this many bytes before the client's place again after a resume. */
  overlap = 0;
  /** Answers neither pings nor anything else. */
  deaf = false;
  /** How many connections there were. */
  connections = 0;
  snapshotFor: (() => { cols: number; rows: number; bytes: Buffer }) | null = null;
  private peer: Peer | null = null;

  get connected(): boolean {
    return this.peer !== null;
  }

  print(text: string | Buffer, stream: 'out' | 'err' = 'out'): void {
    this.output.append(Buffer.from(text), stream);
    this.peer?.pump();
  }

  end(exit: Partial<Exit> = {}): void {
    this.exit = { code: 0, signal: null, reason: 'exited', final_offset: this.output.end, ...exit };
    this.peer?.pump();
  }

  note(note: ServerNote): void {
    this.peer?.send(jsonFrame('note', note));
  }

  frame(bytes: Buffer): void {
    this.peer?.send(bytes);
  }

  acknowledgeInput(): void {
    this.peer?.send(ackFrame(this.input.length, this.input.length + this.inputLimit));
  }

  /** Asks the client for the input that it still means, as after a silence. */
  ask(): void {
    this.peer?.send(placeFrame(this.input.length));
  }

  close(code: number): void {
    this.peer?.socket.close(code);
  }

  /** The connection is gone without a word. */
  cut(): void {
    this.peer?.socket.terminate();
  }

  accept(socket: WebSocket): void {
    this.connections += 1;
    this.peer = new Peer(socket, this, () => {
      this.peer = null;
    });
  }
}

class Peer {
  readonly socket: WebSocket;
  private readonly session: ScriptedSession;
  private place: number | null = null;
  private limit = TERMINAL_LIMITS.firstWindow;
  private sent = 0;
  private readonly cutAfter: number;

  constructor(socket: WebSocket, session: ScriptedSession, gone: () => void) {
    this.socket = socket;
    this.session = session;
    this.cutAfter = session.cuts.shift() ?? Number.POSITIVE_INFINITY;
    socket.on('message', (data) => {
      if (!session.deaf) this.heard(readFrame(data as Buffer));
    });
    socket.on('close', gone);
    socket.on('error', () => {});
  }

  send(frame: Buffer): void {
    if (!this.session.deaf) this.socket.send(frame);
  }

  pump(): void {
    const { output, exit } = this.session;
    while (this.place !== null && this.socket.readyState === 1) {
      const piece = output.read(this.place, 4_000, this.limit);
      if (piece === null) break;
      this.send(outputFrame(piece.stream, piece.offset, piece.bytes));
      this.place += piece.bytes.length;
      this.sent += piece.bytes.length;
      if (this.sent >= this.cutAfter) this.socket.terminate();
    }
    if (exit === null || this.place !== output.end || this.socket.readyState !== 1) return;
    this.session.over = true;
    this.send(jsonFrame('exit', exit));
  }

  private heard(frame: Frame): void {
    const { session } = this;
    if (frame.type === 'hello') this.welcome(frame.value as ClientHello);
    else if (frame.type === 'ack') {
      this.limit = Math.max(this.limit, frame.limit);
      this.pump();
    } else if (frame.type === 'input') this.take(frame);
    else if (frame.type === 'resize') {
      session.sizes.push(`${frame.cols}x${frame.rows}`);
      session.onResize();
    } else if (frame.type === 'signal') session.signals.push(frame.signal);
    else if (frame.type === 'eof') session.eof = true;
    else if (frame.type === 'anew') session.begun += 1;
    else if (frame.type === 'ping') this.send(pongFrame(frame.t));
    else if (frame.type === 'note') {
      session.notes.push(frame.value as ClientNote);
      session.onNote(frame.value as ClientNote);
    }
  }

  private take({ offset, bytes }: Extract<Frame, { type: 'input' }>): void {
    const { session } = this;
    const at = session.input.length;
    if (offset + bytes.length > at + session.inputLimit) throw new Error('input beyond the limit');
    if (session.mode === 'read' || offset > at || offset + bytes.length <= at) return;
    const fresh = bytes.subarray(at - offset);
    session.input = Buffer.concat([session.input, fresh]);
    session.onInput(fresh);
  }

  private welcome(hello: ClientHello): void {
    const { session } = this;
    session.hellos.push(hello);
    if (hello.resume !== null && hello.resume.secret !== SECRET) throw new Error('a stolen secret');
    this.send(
      jsonFrame('note', {
        kind: 'welcome',
        session_id: SESSION,
        node_name: 'web-01',
        mode: session.mode,
        taken: session.input.length,
        secret: SECRET,
        recorded: session.recorded,
        writer: session.mode === 'write' ? 'ada' : 'bob',
        viewers: [],
      } satisfies ServerNote),
    );
    this.send(placeFrame(session.input.length));
    const { resume } = hello;
    const isKept = resume !== null && (resume.received >= session.output.start || session.snapshotFor === null);
    if (isKept) this.place = Math.max(resume.received - session.overlap, session.output.start);
    else if (session.snapshotFor === null) this.place = session.output.start;
    else {
      const { cols, rows, bytes } = session.snapshotFor();
      this.place = session.output.end;
      this.send(snapshotFrame({ cols, rows, offset: this.place }, bytes));
    }
    this.limit = Math.max(this.limit, this.place + TERMINAL_LIMITS.firstWindow);
    this.pump();
  }
}

export async function startTerminalServer(): Promise<TerminalServer> {
  const privateKey = generateKey('p256');
  const cert = selfSignedP256({ privateKey, dnsNames: ['localhost'], addresses: ['127.0.0.1'] });
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const session = new ScriptedSession();
  const requests: string[] = [];
  const problems: FaultCode[] = [];
  const attaches: unknown[] = [];
  const tickets = new Set<string>();
  let issued = 0;
  const server: Server = createServer({ cert, key });
  const ticket = (host: string | undefined) => {
    issued += 1;
    const text = `ticket-${issued}`;
    tickets.add(text);
    return `wss://${host}${API_BASE}/terminal/session/${SESSION}/stream?ticket=${text}`;
  };
  const open = new Set<TLSSocket>();
  server.on('secureConnection', (socket: TLSSocket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket));
    socket.on('error', () => {});
  });
  server.on('request', (request, response) => void handle(request, response));
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').slice(API_BASE.length);
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    const body: unknown = parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString()) : null;
    requests.push(`${request.method} ${path}`);
    const answer = (status: number, value: unknown, type = 'application/json') => {
      response.writeHead(status, { 'content-type': type });
      response.end(value === null ? undefined : JSON.stringify(value));
    };
    const refuse = (code: FaultCode) => {
      const { status, title } = FAULTS[code];
      answer(status, { type: 'about:blank', title, status, detail: title, code }, 'application/problem+json');
    };
    const problem = problems.shift();
    if (problem !== undefined) return refuse(problem);
    if (request.method === 'GET' && path.startsWith('/agents')) return answer(200, agentsAnswer());
    if (request.method === 'POST' && path.startsWith(`/terminal/${NODE}`)) {
      return answer(200, { session_id: SESSION, ws_url: ticket(request.headers.host) });
    }
    if (request.method === 'POST' && path.endsWith('/attach')) {
      attaches.push(body);
      if (session.over) return refuse('terminal_over');
      return answer(200, { ws_url: ticket(request.headers.host) });
    }
    if (request.method === 'DELETE') {
      session.end({ code: null, reason: 'closed' });
      session.over = true;
      return answer(204, null);
    }
    if (request.method === 'GET' && path === `/terminal/session/${SESSION}`) return answer(200, detailOf(session));
    refuse('not_found');
  }
  const sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: TERMINAL_LIMITS.frame,
    handleProtocols: (protocols) => (protocols.has(TERMINAL_SUBPROTOCOL) ? TERMINAL_SUBPROTOCOL : false),
  });
  server.on('upgrade', (request, socket, head) => {
    const given = new URL(request.url ?? '', 'https://x').searchParams.get('ticket') ?? '';
    sockets.handleUpgrade(request, socket, head, (ws) => {
      if (!tickets.delete(given)) ws.close(4401);
      else session.accept(ws);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fingerprint: spkiFingerprint(new X509Certificate(cert)),
    session,
    requests,
    problems,
    attaches,
    stop: () =>
      new Promise((resolve) => {
        for (const socket of sockets.clients) socket.terminate();
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

const agentsAnswer = () => [agent];

const agent = {
  node_id: NODE,
  name: 'web-01',
  public_key: 'b'.repeat(64),
  status: 'approved',
  connected: true,
  tags: {},
  attributes: {},
};

const detailOf = (session: ScriptedSession) => ({
  session_id: SESSION,
  node_id: NODE,
  status: session.over ? 'closed' : 'active',
  reason: session.exit?.reason ?? null,
  exit_code: session.exit?.code ?? null,
  exit_signal: session.exit?.signal ?? null,
  output_bytes: session.output.end,
});

/** A frame of output in one piece; programs send its head and its bytes apart. */
export const outputFrame = (stream: OutputStream, offset: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([outputHead(stream, offset), bytes]);
