/** The requests that are being served, so that a stop can wait for them. */
import type { ServerResponse } from 'node:http';
import type { Fault } from '../../src/kernel/fault.js';
import type { Cancellation } from './cancellation.js';

export class InFlight {
  private readonly requests = new Map<ServerResponse, Cancellation>();
  private idle: (() => void) | null = null;

  add(response: ServerResponse, cancellation: Cancellation): void {
    this.requests.set(response, cancellation);
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
  cancel(reason: Fault): void {
    for (const cancellation of this.requests.values()) cancellation.cancel(reason);
  }
}
