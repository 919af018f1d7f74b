/** An answer of `text/event-stream`: one event at a time, and no more in memory than one that a slow reader has not taken. */
import type { ServerResponse } from 'node:http';

const EVENT_STREAM = 'text/event-stream';

interface EventStreamLimits {
  /** A client that takes nothing for so long is cut off; it can go on behind the last event that it got. */
  readonly stallMs: number;
  /** How long nothing is sent at most. */
  readonly heartbeatMs: number;
}

/** How long a client is asked to wait before it connects again, in milliseconds. */
const RETRY_MS = 2000;

export class EventStream {
  private readonly response: ServerResponse;
  private readonly limits: EventStreamLimits;
  private begun = false;
  private lastSent = 0;

  /** Nothing is sent before `open`, so until then the answer may still be another one. */
  constructor(response: ServerResponse, limits: EventStreamLimits) {
    this.response = response;
    this.limits = limits;
  }

  get started(): boolean {
    return this.begun;
  }

  /** Answers with 200, so that the client knows that it is connected. */
  async open(place: string | null): Promise<void> {
    this.begun = true;
    beginStream(this.response, `${EVENT_STREAM}; charset=utf-8`);
    await this.write(`retry: ${RETRY_MS}\n${placeLine(place)}\n`);
  }

  /** Resolves when the client has room for more, or is gone; never rejects. */
  async send(id: string, data: unknown): Promise<void> {
    await this.write(`id: ${id}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** Tells that the connection lives, when nothing else did for a while. */
  async beat(place: string | null): Promise<void> {
    if (performance.now() - this.lastSent < this.limits.heartbeatMs) return;
    await this.write(`: still here\n${placeLine(place)}\n`);
  }

  /** The problem document that ends it. */
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

/** An ID without data: the client goes on behind it, and shows nothing. */
const placeLine = (place: string | null): string => (place === null ? '' : `id: ${place}\n`);

/** An answer of `application/x-ndjson`: one JSON line at a time, with a bound on what waits for a slow reader. */
const NDJSON = 'application/x-ndjson';

/** True when the client prefers a stream. */
export const wantsLines = (accept: string | undefined): boolean =>
  /(^|[\s,])application\/x-ndjson(?![\w.+-])/i.test(accept ?? '');

export class LineStream {
  private readonly response: ServerResponse;
  private readonly maxBacklog: number;
  private begun = false;
  private roomAgain: Promise<void> | null = null;

  /** Nothing is sent before the first line, so until then the answer may still be another one. */
  constructor(response: ServerResponse, maxBacklog: number) {
    this.response = response;
    this.maxBacklog = maxBacklog;
  }

  get started(): boolean {
    return this.begun;
  }

  /**
   * Sends a line. The promise resolves when there is room for more, and at once when the client is gone; it never
   * rejects. A client that lets more than the backlog wait is cut off.
   */
  write(line: unknown): Promise<void> {
    const { response } = this;
    if (isGone(response)) return Promise.resolve();
    if (!this.begun) this.begin();
    if (response.write(`${JSON.stringify(line)}\n`)) return Promise.resolve();
    if (response.writableLength > this.maxBacklog) response.destroy();
    this.roomAgain ??= hasRoom(response).then(() => {
      this.roomAgain = null;
    });
    return this.roomAgain;
  }

  end(): void {
    if (!isGone(this.response)) this.response.end();
  }

  private begin(): void {
    this.begun = true;
    beginStream(this.response, `${NDJSON}; charset=utf-8`);
  }
}

/** Sends status 200 and the headers. */
function beginStream(response: ServerResponse, contentType: string): void {
  // The second header keeps a proxy from collecting what comes in pieces.
  response.writeHead(200, { 'content-type': contentType, 'x-accel-buffering': 'no' });
}

/** True when the client can receive nothing more. */
export const isGone = (response: ServerResponse): boolean => response.destroyed || response.writableEnded;

/** Resolves when the client has taken what was written, or is gone; never rejects. */
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
