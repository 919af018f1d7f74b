/** An answer of `text/event-stream`: one event at a time, and no more in memory than one that a slow reader has not taken. */
import type { FastifyReply } from 'fastify';
import { beginStream, hasRoom, isGone } from './raw-response.js';

export const EVENT_STREAM = 'text/event-stream';

export interface EventStreamLimits {
  /** A client that takes nothing for so long is cut off; it can go on behind the last event that it got. */
  readonly stallMs: number;
  /** How long nothing is sent at most. */
  readonly heartbeatMs: number;
}

/** How long a client is asked to wait before it connects again, in milliseconds. */
const RETRY_MS = 2000;

export class EventStream {
  private readonly reply: FastifyReply;
  private readonly limits: EventStreamLimits;
  private begun = false;
  private lastSent = 0;

  /** Nothing is sent before `open`, so until then the answer may still be another one. */
  constructor(reply: FastifyReply, limits: EventStreamLimits) {
    this.reply = reply;
    this.limits = limits;
  }

  get started(): boolean {
    return this.begun;
  }

  /** Answers with 200, so that the client knows that it is connected. */
  async open(place: string | null): Promise<void> {
    this.begun = true;
    beginStream(this.reply, `${EVENT_STREAM}; charset=utf-8`);
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
    if (!isGone(this.reply.raw)) this.reply.raw.end();
  }

  private async write(text: string): Promise<void> {
    const response = this.reply.raw;
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
