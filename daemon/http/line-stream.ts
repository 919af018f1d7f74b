/** An answer of `application/x-ndjson`: one JSON line at a time, with a bound on what waits for a slow reader. */
import type { FastifyReply } from 'fastify';
import { beginStream, hasRoom, isGone } from './raw-response.js';

export const NDJSON = 'application/x-ndjson';

/** True when the client prefers a stream. */
export const wantsLines = (accept: string | undefined): boolean =>
  /(^|[\s,])application\/x-ndjson(?![\w.+-])/i.test(accept ?? '');

export class LineStream {
  private readonly reply: FastifyReply;
  private readonly maxBacklog: number;
  private begun = false;
  private roomAgain: Promise<void> | null = null;

  /** Nothing is sent before the first line, so until then the answer may still be another one. */
  constructor(reply: FastifyReply, maxBacklog: number) {
    this.reply = reply;
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
    const response = this.reply.raw;
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
    if (!isGone(this.reply.raw)) this.reply.raw.end();
  }

  private begin(): void {
    this.begun = true;
    beginStream(this.reply, `${NDJSON}; charset=utf-8`);
  }
}
