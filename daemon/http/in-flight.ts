/** The requests that are being served, so that a stop can wait for them. */
import type { ServerResponse } from 'node:http';
import type { Fault } from '../../src/kernel/fault.js';

export class InFlight {
  private readonly requests = new Map<ServerResponse, AbortController>();
  private idle: (() => void) | null = null;

  add(response: ServerResponse, abort: AbortController): void {
    this.requests.set(response, abort);
  }

  /** Its answer is sent, or its connection is gone. */
  remove(response: ServerResponse): void {
    this.requests.delete(response);
    if (this.requests.size === 0) this.idle?.();
  }

  /** True when an answer on this socket has begun. */
  isAnswering(socket: unknown): boolean {
    return [...this.requests.keys()].some((response) => response.socket === socket && response.headersSent);
  }

  /** Resolves when nothing is in flight any more, or after that many milliseconds. */
  async drained(ms: number): Promise<void> {
    if (this.requests.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Tells every handler that is still running to end. */
  abort(reason: Fault): void {
    for (const controller of this.requests.values()) controller.abort(reason);
  }
}
