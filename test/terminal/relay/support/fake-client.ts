/** An operator's end of a stream, as plain as can be: takes what comes and acknowledges it when told to. */
import { WebSocket } from 'ws';
import { ackFrame, type Frame, jsonFrame, pongFrame, readFrame } from '../../../../src/terminal/frames.js';
import { TERMINAL_SUBPROTOCOL } from '../../../../src/terminal/limits.js';
import { until } from '../../../support/until.js';

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
