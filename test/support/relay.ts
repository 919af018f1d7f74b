/** The room of terminals with its real store, recordings, screens, agent port and API; a token is the name of a role. */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { putOperator } from '../../daemon/auth/operator-store.js';
import type { DomainEvent } from '../../daemon/core/domain-event.js';
import { TransactionalWriter } from '../../daemon/core/unit-of-work.js';
import { AgentListener } from '../../daemon/fleet/agent-listener.js';
import { insertAgent } from '../../daemon/fleet/agent-store.js';
import { createApiServer } from '../../daemon/http/api-server.js';
import { createRelay } from '../../daemon/terminal/create-terminals.js';
import type { TerminalRules } from '../../daemon/terminal/live-sessions.js';
import type { Recordings } from '../../daemon/terminal/recordings/recorder.js';
import type { RecordingStore } from '../../daemon/terminal/recordings/recordings.js';
import { Transcripts } from '../../daemon/terminal/recordings/transcripts.js';
import { resumeKeyOf } from '../../daemon/terminal/session/resume.js';
import { terminalHandlers } from '../../daemon/terminal/terminal-routes.js';
import type { SocketTimes } from '../../daemon/terminal/terminal-socket.js';
import { terminalRoutes } from '../../src/contract/terminal.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { ackFrame, type Frame, jsonFrame, pongFrame, readFrame } from '../../src/terminal/frames.js';
import { TERMINAL_SUBPROTOCOL } from '../../src/terminal/limits.js';
import { machinesOf } from './audit.js';
import { agentRow, newIds } from './database.js';
import { authenticate, authorize, authorizeOn, noKeys, operator, type Sent, send } from './http.js';
import { newIdentity } from './identity.js';
import { createRecordings } from './recordings.js';
import { FakeAgent } from './relay-agent.js';
import { openTestDatabase } from './store.js';
import { until } from './until.js';

export interface RoomOptions {
  readonly rules?: Partial<TerminalRules>;
  readonly times?: Partial<SocketTimes>;
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly minFreeBytes?: number;
  /** The replacement for the room's recordings. */
  readonly recordings?: (real: RecordingStore) => Recordings;
}

/** As built: its thread is a file of its own. */
async function createScreens() {
  const built = new URL('../../dist/daemon/terminal/emulator/screens.js', import.meta.url).href;
  const module: typeof import('../../daemon/terminal/emulator/screens.js') = await import(built);
  return module.createScreens({ logger: silentLogger });
}

const RULES: TerminalRules = {
  record: 'best_effort',
  recordCommands: 'text',
  idle: 0,
  detached: 1_800_000,
  max: 43_200_000,
  agentGrace: 120_000,
  perOperator: 50,
};

/** Real time, which a test can move ahead. */
export class SkewedClock {
  private skew = 0;
  now = () => Date.now() + this.skew;
  monotonic = () => performance.now() + this.skew;
  advance(ms: number): void {
    this.skew += ms;
  }
}

/** One orchestrator after the other over the same directory, with one agent. */
export class Room {
  readonly directory = mkdtempSync(join(tmpdir(), 'orch-terminal-'));
  readonly clock = new SkewedClock();
  readonly identity = newIdentity();
  readonly events: DomainEvent[] = [];
  rules: TerminalRules;
  isLinked = true;
  readonly agent: FakeAgent;
  private readonly options: RoomOptions;
  private readonly newId = newIds();
  private parts: Awaited<ReturnType<Room['make']>> | null = null;
  private port = 0;

  private constructor(options: RoomOptions) {
    this.options = options;
    this.rules = { ...RULES, ...options.rules };
    this.agent = new FakeAgent(newIdentity(), () => this.port);
  }

  static async start(options: RoomOptions = {}): Promise<Room> {
    const room = new Room(options);
    onTestFinished(async () => {
      for (const { socket } of room.agent.sessions.values()) socket?.terminate();
      await room.stop();
      rmSync(room.directory, { recursive: true, force: true });
    });
    await room.begin();
    const { nodeId } = room.agent;
    const { publicKey } = room.agent.identity;
    for (const role of ['admin', 'operator', 'viewer'] as const) {
      const { operator_id, username, public_key, added_at, added_by } = operator(role);
      await putOperator(room.running.db, {
        ...{ operator_id, username, role, public_key, added_at, added_by },
        bootstrap: 0,
      });
    }
    await insertAgent(
      room.running.db,
      agentRow({ node_id: nodeId, name: 'web-1', status: 'approved', public_key: publicKey }),
    );
    return room;
  }

  get running() {
    if (this.parts === null) throw new Error('the orchestrator is stopped');
    return this.parts;
  }

  get terminals() {
    return this.running.room.terminals;
  }

  get node(): string {
    return this.agent.nodeId;
  }

  async begin(): Promise<void> {
    this.parts = await this.make();
    this.port = this.running.listener.address().port;
  }

  async stop(): Promise<void> {
    const { parts } = this;
    this.parts = null;
    if (parts === null) return;
    await parts.api.stop();
    await parts.listener.stop();
    await parts.room.terminals.stop();
    await parts.transcripts.stop();
    await parts.recordings.stop();
    await parts.screens.stop();
    await parts.close();
  }

  async call(method: string, path: string, body?: unknown, token = 'operator'): Promise<Sent> {
    return send(this.running.api, method, `/api/v1${path}`, { token, ...(body === undefined ? {} : { body }) });
  }

  /** Opens a shell and gives its ID and where its stream is. */
  async openShell(query = 'cols=80&rows=24&term=xterm', token = 'operator'): Promise<{ id: string; url: string }> {
    const { status, json, text } = await this.call('POST', `/terminal/${this.node}?${query}`, undefined, token);
    if (status !== 200) throw new Error(`${status} ${text}`);
    return { id: json.session_id, url: json.ws_url };
  }

  async exec(body: object = { command: ['make'] }): Promise<{ id: string; url: string }> {
    const { status, json, text } = await this.call('POST', `/agents/${this.node}/exec`, body);
    if (status !== 200) throw new Error(`${status} ${text}`);
    return { id: json.session_id, url: json.ws_url };
  }

  /** Attaches; what the operator has to say is for the test. */
  async attach(id: string, body: object, options: ClientOptions & { as?: string } = {}): Promise<FakeClient> {
    const { status, json, text } = await this.call(
      'POST',
      `/terminal/session/${id}/attach`,
      body,
      options.as ?? 'operator',
    );
    if (status !== 200) throw new Error(`${status} ${text}`);
    return FakeClient.open(json.ws_url, options);
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  async get(id: string): Promise<any> {
    return (await this.call('GET', `/terminal/session/${id}`)).json;
  }

  /** Waits until an event of this type is stored, which may be later than its effect is seen. Returns the newest one. */
  async told(type: DomainEvent['type']): Promise<DomainEvent> {
    const newest = () => this.events.findLast((event) => event.type === type);
    await until(() => newest() !== undefined, `${type} is stored`);
    return newest() as DomainEvent;
  }

  typesOf(): string[] {
    return this.events.map(({ type }) => type);
  }

  private async make() {
    const { clock, identity, options } = this;
    const store = await openTestDatabase({
      file: join(this.directory, 'orch.db'),
      logger: silentLogger,
      clock: Date,
      onFatal: (error) => {
        throw error;
      },
    });
    const { db } = store;
    const uow = new TransactionalWriter({
      db,
      clock,
      newId: this.newId,
      publish: (event) => this.events.push(event),
    });
    const common = { db, uow, clock, logger: silentLogger, dataDir: this.directory };
    const { maxBytes = 256 * 1024 * 1024, minFreeBytes = 0 } = options;
    const recordings = createRecordings({ ...common, maxBytes, minFreeBytes });
    const screens = await createScreens();
    const room = createRelay({
      ...common,
      newId: this.newId,
      randomBytes,
      resumeKey: resumeKeyOf(identity.privateKey),
      link: {
        isConnected: () => this.isLinked,
        holdOf: () => null,
        supports: () => this.isLinked,
        send: (_, messages) => {
          if (this.isLinked) for (const message of messages) this.agent.receive(message);
          return this.isLinked;
        },
      },
      recordings: options.recordings?.(recordings) ?? recordings,
      screens,
      rules: () => this.rules,
      timeoutMs: options.timeoutMs ?? 10_000,
      times: { hello: 5_000, ping: 10_000, dead: 3_600_000, closeTimeout: 2_000, ...options.times },
    });
    this.agent.send = (message) => room.terminals.receive(this.agent.nodeId, message as never);
    const transcripts = new Transcripts({
      ...common,
      ageTime: () => Date.now(),
      durableSize: (id) => recordings.durableSize(id),
      days: () => 90,
    });
    await room.terminals.start();
    const listener = new AgentListener({
      host: '127.0.0.1',
      port: 0,
      privateKey: identity.privateKey,
      onConnection: ({ socket }) => socket.terminate(),
      endpoints: [room.agentEndpoint],
      logger: silentLogger,
      timeouts: { stop: 500 },
    });
    await listener.start();
    const api = createApiServer({
      contract: terminalRoutes,
      handlers: terminalHandlers({ terminals: room.terminals, transcripts, machines: machinesOf(store) }),
      authenticate,
      authorize,
      authorizeOn,
      idempotency: noKeys,
      logger: silentLogger,
      clock,
      newRequestId: () => ulid(),
      listen: { host: '127.0.0.1', port: 0 },
      tls: null,
      trustProxyTls: false,
      validateAnswers: true,
      streams: room.clientEndpoint,
    });
    await api.start();
    return { ...store, uow, recordings, screens, room, transcripts, listener, api };
  }
}

/** An operator's end of a stream, as plain as can be: takes what comes and acknowledges it when asked to. */
// biome-ignore lint/suspicious/noExplicitAny: notes of every shape
type Json = Record<string, any>;

export interface ClientOptions {
  readonly resume?: { readonly secret: string; readonly received: number } | null;
  /** It acknowledges all that comes, as it comes. */
  readonly acks?: boolean;
  readonly headers?: Record<string, string>;
  readonly protocol?: string;
}

export class FakeClient {
  readonly notes: Json[] = [];
  readonly frames: Frame[] = [];
  readonly pictures: { readonly head: Json; readonly bytes: Buffer }[] = [];
  /** Output since `from`. */
  output = Buffer.alloc(0);
  from = -1;
  exit: Json | null = null;
  closed: { code: number; reason: string } | null = null;
  acks: boolean;

  readonly socket: WebSocket;

  private constructor(socket: WebSocket, options: ClientOptions) {
    this.socket = socket;
    this.acks = options.acks ?? true;
    socket.on('message', (data: Buffer) => this.take(readFrame(data)));
    socket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
  }

  /** Rejects with the status when the upgrade is refused. */
  static async open(url: string, options: ClientOptions = {}): Promise<FakeClient> {
    const socket = new WebSocket(url, options.protocol ?? TERMINAL_SUBPROTOCOL, {
      perMessageDeflate: false,
      ...(options.headers ? { headers: options.headers } : {}),
    });
    const client = new FakeClient(socket, options);
    await new Promise<void>((resolve, reject) => {
      socket.on('open', () => resolve());
      socket.on('error', () => undefined);
      socket.on('unexpected-response', (_, response) => {
        response.resume();
        reject(new Error(`refused with ${response.statusCode}`));
      });
      socket.on('close', () => reject(new Error('closed')));
    });
    socket.send(jsonFrame('hello', { version: 1, resume: options.resume ?? null }));
    return client;
  }

  get welcome(): Json | undefined {
    return this.notes.find(({ kind }) => kind === 'welcome');
  }

  /** Where its output ends. */
  get received(): number {
    return this.from + this.output.length;
  }

  async welcomed(): Promise<Json> {
    await until(() => this.welcome !== undefined || this.closed !== null, 'the client is welcome');
    if (this.welcome === undefined) throw new Error(`closed with ${this.closed?.code} ${this.closed?.reason}`);
    return this.welcome;
  }

  async shows(text: string): Promise<void> {
    await until(() => this.output.includes(text), `the client has got ${text}`);
  }

  async noted(kind: string): Promise<Json> {
    await until(() => this.notes.some((note) => note.kind === kind), `the client has got a note ${kind}`);
    return this.notes.findLast((note) => note.kind === kind) as Json;
  }

  async ended(): Promise<{ code: number; reason: string }> {
    await until(() => this.closed !== null, 'the client was closed');
    return this.closed as { code: number; reason: string };
  }

  ack(limit = this.received + 1024 * 1024): void {
    this.socket.send(ackFrame(this.received, limit));
  }

  say(note: object): void {
    this.socket.send(jsonFrame('note', note));
  }

  private take(frame: Frame): void {
    this.frames.push(frame);
    switch (frame.type) {
      case 'ping':
        this.socket.send(pongFrame(frame.t));
        return;
      case 'note':
        this.notes.push(frame.value as Json);
        return;
      case 'exit':
        this.exit = frame.value as Json;
        return;
      case 'snapshot':
        this.pictures.push({ head: frame.head as Json, bytes: frame.bytes });
        this.from = (frame.head as Json).offset;
        this.output = Buffer.alloc(0);
        if (this.acks) this.ack();
        return;
      case 'output':
        if (this.from < 0) this.from = frame.offset;
        if (frame.offset !== this.received) throw new Error(`output from ${frame.offset}, not ${this.received}`);
        this.output = Buffer.concat([this.output, frame.bytes]);
        if (this.acks) this.ack();
    }
  }
}
