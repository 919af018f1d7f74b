/** The limit beside a simulated fleet: as many bare WebSockets over TLS, in processes of their own. */
import type { BareLinksQuestion } from '../limits/bare-links.js';
import { residentMemory } from '../process-figures.js';
import { Program } from '../programs.js';

export const BARE = 'bare ws over TLS';

const SHARE = 1_000;
const DIALS = 32;
/** Maximum milliseconds of an answer. */
const PATIENCE = 600_000;

export class BareFleet {
  /** Every growth so far, in order. */
  readonly growths: { readonly clients: number; readonly ms: number }[] = [];
  private server: Program;
  private readonly port: number;
  private readonly clients: Program[] = [];
  private connected = 0;
  /** Resident memory of the server without clients, in bytes. */
  private readonly empty: number;

  private constructor(server: Program, port: number) {
    this.server = server;
    this.port = port;
    this.empty = residentMemory(server.pid);
  }

  static async start(): Promise<BareFleet> {
    const server = new Program('bare-links');
    return new BareFleet(server, await server.ask<number>({ do: 'listen', port: 0 } satisfies BareLinksQuestion));
  }

  /** Connects clients until there are `size`. Does nothing for a smaller size. */
  async growTo(size: number): Promise<void> {
    const more = size - this.connected;
    if (more <= 0) return;
    const shares = Array.from({ length: Math.ceil(more / SHARE) }, (_, index) => Math.min(SHARE, more - index * SHARE));
    const programs = shares.map(() => new Program('bare-links'));
    this.clients.push(...programs);
    const start = performance.now();
    await Promise.all(
      programs.map((program, index) => {
        const clients = shares[index] ?? 0;
        return this.ask(program, { do: 'connect', port: this.port, clients, atOnce: Math.ceil(DIALS / shares.length) });
      }),
    );
    this.connected = size;
    this.growths.push({ clients: more, ms: performance.now() - start });
  }

  /** Sends all clients a message, which they send back. Returns the milliseconds until all have. */
  exchange(bytes: number): Promise<number> {
    return this.ask<number>(this.server, { do: 'exchange', bytes });
  }

  /** Resident memory of the server for each connection, in bytes. */
  memoryEach(): number {
    return (residentMemory(this.server.pid) - this.empty) / this.connected;
  }

  /** Kills the server and starts another. Returns the milliseconds until the first client was back, and until all were. */
  async restart(): Promise<{ readonly first: number; readonly all: number }> {
    await Promise.all(this.clients.map((client) => this.ask(client, { do: 'reset' })));
    const start = Date.now();
    await this.server.stop();
    this.server = new Program('bare-links');
    await this.ask(this.server, { do: 'listen', port: this.port });
    const end = performance.now() + PATIENCE;
    for (;;) {
      const arrivals = (
        await Promise.all(this.clients.map((client) => this.ask<readonly number[]>(client, { do: 'arrivals' })))
      ).flat();
      if (arrivals.length >= this.connected) {
        const sorted = arrivals.toSorted((one, other) => one - other);
        return { first: (sorted[0] ?? start) - start, all: (sorted[this.connected - 1] ?? start) - start };
      }
      if (performance.now() > end) throw new Error(`only ${arrivals.length} of ${this.connected} bare links are back`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.server, ...this.clients].map((program) => program.stop()));
  }

  private ask<T = null>(program: Program, question: BareLinksQuestion): Promise<T> {
    return program.ask<T>(question, PATIENCE);
  }
}
