/** A program that loads an HTTPS server over raw connections, so that it needs little of the machine itself, and keeps every latency. */
import { connect, type TLSSocket } from 'node:tls';
import { answerQuestions } from './programs.js';
import { percentile } from './statistics.js';

export interface LoadTarget {
  readonly port: number;
  /** A whole GET request, with the empty line at its end. */
  readonly request: string;
}

export type LoadQuestion =
  /** Repeats the request on so many connections; `fresh` opens one for each request. Answers with `Load`. */
  | {
      readonly do: 'load';
      readonly target: LoadTarget;
      readonly connections: number;
      readonly ms: number;
      readonly fresh: boolean;
    }
  /** Sends each request once, one after the other. Answers with the milliseconds of each. */
  | { readonly do: 'sequence'; readonly targets: readonly LoadTarget[] }
  /** Begins to send the requests in turns every few milliseconds, on connections of their own and also on new ones if `fresh`. */
  | { readonly do: 'probe'; readonly targets: readonly LoadTarget[]; readonly fresh: boolean }
  /** Answers with the milliseconds of each probe since it began. */
  | { readonly do: 'endProbe' };

export interface Load {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

const PROBE_INTERVAL = 5;
const PROBES_AT_ONCE = 16;

class Connection {
  private readonly socket: TLSSocket;
  private received: Buffer = Buffer.alloc(0);
  private waiting: { resolve(): void; reject(error: Error): void } | null = null;

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on('data', (bytes) => this.receive(bytes));
    socket.on('error', (error) => this.waiting?.reject(error));
    socket.on('close', () => this.waiting?.reject(new Error('the server closed the connection')));
  }

  static open(port: number): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false, ca: [] });
      socket.setNoDelay(true);
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the server closed the connection')));
      socket.once('secureConnect', () => resolve(new Connection(socket)));
    });
  }

  /** False once either end has closed it, as a server does with an idle connection. */
  get isOpen(): boolean {
    return this.socket.writable && !this.socket.readableEnded;
  }

  /** Sends a request and waits for the whole answer. */
  get(request: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      if (this.isOpen) this.socket.write(request);
      else reject(new Error('the connection is closed'));
    });
  }

  close(): void {
    this.socket.destroy();
  }

  private receive(bytes: Buffer): void {
    this.received = this.received.length === 0 ? bytes : Buffer.concat([this.received, bytes]);
    const end = this.received.indexOf('\r\n\r\n');
    if (end === -1) return;
    const head = this.received.toString('latin1', 0, end);
    const [, length] = /content-length: (\d+)/i.exec(head) ?? [];
    const isWhole =
      length === undefined
        ? this.received.subarray(-5).equals(LAST_CHUNK)
        : this.received.length >= end + 4 + Number(length);
    if (!isWhole) return;
    this.received = Buffer.alloc(0);
    const { waiting } = this;
    this.waiting = null;
    if (head.startsWith('HTTP/1.1 200')) waiting?.resolve();
    else waiting?.reject(new Error(`the answer was ${head.split('\r\n')[0]}`));
  }
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n');

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function once({ port, request }: LoadTarget): Promise<void> {
  const connection = await Connection.open(port);
  await connection.get(request);
  connection.close();
}

async function load({ target, connections, ms, fresh }: Extract<LoadQuestion, { do: 'load' }>): Promise<Load> {
  const latencies: number[] = [];
  const opened = fresh
    ? []
    : await Promise.all(Array.from({ length: connections }, () => Connection.open(target.port)));
  const start = performance.now();
  const end = start + ms;
  await Promise.all(
    Array.from({ length: connections }, async (_, index) => {
      while (performance.now() < end) {
        latencies.push(await timed(() => opened[index]?.get(target.request) ?? once(target)));
      }
    }),
  );
  const seconds = (performance.now() - start) / 1000;
  for (const connection of opened) connection.close();
  return {
    perSecond: latencies.length / seconds,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  };
}

async function sequence(targets: readonly LoadTarget[]): Promise<readonly number[]> {
  const connections = new Map<number, Connection>();
  const latencies: number[] = [];
  for (const { port, request } of targets) {
    const connection = connections.get(port) ?? (await Connection.open(port));
    connections.set(port, connection);
    latencies.push(await timed(() => connection.get(request)));
  }
  for (const connection of connections.values()) connection.close();
  return latencies;
}

let endProbe: () => Promise<readonly number[]> = async () => [];

function probe(targets: readonly LoadTarget[], fresh: boolean): void {
  const latencies: number[] = [];
  const free: Connection[] = [];
  const underWay = new Set<Promise<void>>();
  let turn = 0;
  const ask = async (target: LoadTarget, isFresh: boolean) => {
    const start = performance.now();
    try {
      if (isFresh) await once(target);
      else {
        let connection = free.pop();
        while (connection !== undefined && !connection.isOpen) connection = free.pop();
        connection ??= await Connection.open(target.port);
        await connection.get(target.request);
        free.push(connection);
      }
      latencies.push(performance.now() - start);
    } catch {
      // The server was restarted; the next probe has a new connection.
    }
  };
  const timer = setInterval(() => {
    if (underWay.size >= PROBES_AT_ONCE) return;
    const target = targets[turn % targets.length];
    turn += 1;
    if (target === undefined) return;
    const probing: Promise<void> = ask(target, fresh && turn % 4 === 0).finally(() => underWay.delete(probing));
    underWay.add(probing);
  }, PROBE_INTERVAL);
  endProbe = async () => {
    clearInterval(timer);
    await Promise.all(underWay);
    for (const connection of free) connection.close();
    return latencies;
  };
}

answerQuestions(async (question: LoadQuestion): Promise<Load | readonly number[] | null> => {
  switch (question.do) {
    case 'load':
      return load(question);
    case 'sequence':
      return sequence(question.targets);
    case 'probe':
      probe(question.targets, question.fresh);
      return null;
    case 'endProbe':
      return endProbe();
  }
});
