/** Streamed answers: `text/event-stream` and `application/x-ndjson`, with backpressure and bounded memory. */
import type { ServerResponse } from 'node:http';

const EVENT_STREAM = 'text/event-stream';

interface EventStreamLimits {
  /**
   * Timeout in milliseconds after which a stalled client is disconnected; it can resume after the last event it
   * received.
   */
  readonly stallMs: number;
  /** Maximum milliseconds of silence. */
  readonly heartbeatMs: number;
}

/** Milliseconds that a client is asked to wait before it reconnects. */
const RETRY_MS = 2000;

export class EventStream {
  private readonly response: ServerResponse;
  private readonly limits: EventStreamLimits;
  private hasStarted = false;
  private lastSent = 0;

  /** Sends nothing before `open`, so until then the answer may still be another one. */
  constructor(response: ServerResponse, limits: EventStreamLimits) {
    this.response = response;
    this.limits = limits;
  }

  get started(): boolean {
    return this.hasStarted;
  }

  /** Answers with 200, so that the client knows it is connected. */
  async open(place: string | null): Promise<void> {
    this.hasStarted = true;
    beginStream(this.response, `${EVENT_STREAM}; charset=utf-8`);
    await this.write(`retry: ${RETRY_MS}\n${placeLine(place)}\n`);
  }

  /** Sends an event. Resolves when the client has room for more or is disconnected; never rejects. */
  async send(id: string, data: unknown): Promise<void> {
    await this.write(`id: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Sends an event of the type `gap`, without an ID, so that a client that is cut off now is told again. */
  async gap(data: unknown): Promise<void> {
    await this.write(`event: gap\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Sends a heartbeat when nothing was sent for the heartbeat interval. */
  async beat(place: string | null): Promise<void> {
    if (performance.now() - this.lastSent < this.limits.heartbeatMs) return;
    await this.write(`: still here\n${placeLine(place)}\n`);
  }

  /** Sends the problem document that ends the stream. */
  fail(problem: unknown): void {
    void this.write(`event: error\ndata: ${JSON.stringify(problem)}\n\n`);
  }

  end(): void {
    if (!isGone(this.response)) this.response.end();
  }

  private async write(text: string): Promise<void> {
    const { response } = this;
    if (isGone(response)) return;
    this.lastSent = performance.now();
    if (response.write(text)) return;
    const timer = setTimeout(() => response.destroy(), this.limits.stallMs);
    await hasRoom(response);
    clearTimeout(timer);
  }
}

/** Returns an ID without data: the client resumes after it, and shows nothing. */
const placeLine = (place: string | null): string => (place === null ? '' : `id: ${place}\n`);

/** Media type of a line stream: one JSON document per line, with a limit on the backlog of a slow reader, and empty lines. */
const NDJSON = 'application/x-ndjson';

/** Returns true when the client accepts a line stream. */
export const wantsLines = (accept: string | undefined): boolean =>
  /(^|[\s,])application\/x-ndjson(?![\w.+-])/i.test(accept ?? '');

export class LineStream {
  private readonly response: ServerResponse;
  private readonly maxBacklog: number;
  private hasStarted = false;
  private hasLines = false;
  private lastSent = performance.now();
  private drained: Promise<void> | null = null;

  /**
   * Sends nothing before the first line or the first heartbeat, so until then the answer may still be another one. A
   * heartbeat is an empty line, because proxies cut connections that are silent for a minute.
   * @param heartbeatMs maximum milliseconds of silence [default: any]
   */
  constructor(response: ServerResponse, maxBacklog: number, heartbeatMs: number | null = null) {
    this.response = response;
    this.maxBacklog = maxBacklog;
    if (heartbeatMs === null) return;
    const timer = setInterval(() => this.beat(heartbeatMs), heartbeatMs / 3);
    response.once('close', () => clearInterval(timer));
    response.once('finish', () => clearInterval(timer));
  }

  get started(): boolean {
    return this.hasStarted;
  }

  /** True when a line was sent, and not only heartbeats. */
  get hasContent(): boolean {
    return this.hasLines;
  }

  /**
   * Sends a line. The promise resolves when there is room for more, or at once when the client is disconnected; it
   * never rejects. A client whose backlog exceeds the limit is disconnected.
   */
  write(line: unknown): Promise<void> {
    this.hasLines = true;
    return this.send(`${JSON.stringify(line)}\n`);
  }

  private send(text: string): Promise<void> {
    const { response } = this;
    if (isGone(response)) return Promise.resolve();
    if (!this.hasStarted) this.begin();
    this.lastSent = performance.now();
    if (response.write(text)) return Promise.resolve();
    if (response.writableLength > this.maxBacklog) response.destroy();
    this.drained ??= hasRoom(response).then(() => {
      this.drained = null;
    });
    return this.drained;
  }

  /** Sends a heartbeat, unless lines wait for the client or another answer was sent. */
  private beat(heartbeatMs: number): void {
    const { response } = this;
    const isOther = response.headersSent && !this.hasStarted;
    if (isOther || response.writableNeedDrain || performance.now() - this.lastSent < heartbeatMs * (2 / 3)) return;
    void this.send('\n');
  }

  end(): void {
    if (!isGone(this.response)) this.response.end();
  }

  private begin(): void {
    this.hasStarted = true;
    beginStream(this.response, `${NDJSON}; charset=utf-8`);
  }
}

/** Sends status 200 and the headers. */
function beginStream(response: ServerResponse, contentType: string): void {
  // The second header keeps a proxy from buffering the stream.
  response.writeHead(200, { 'content-type': contentType, 'x-accel-buffering': 'no' });
}

/** Returns true when the client can receive nothing more. */
export const isGone = (response: ServerResponse): boolean => response.destroyed || response.writableEnded;

/** Resolves when the client has read what was written, or is disconnected; never rejects. */
function hasRoom(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
    if (isGone(response) || !response.writableNeedDrain) done();
  });
}
