/** Targets of forwards on this machine, connections to them, and running `orch forward` commands. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import type { AuditEvent } from '../../src/contract/audit.js';
import { type Running, type Sandbox, until } from './orch.js';
import { NODE_NAME, type TerminalFleet } from './terminal-fleet.js';

/** Servers of a test file that connections are forwarded to. */
export class Targets {
  private readonly servers: Server[] = [];

  /** Serves on a free port of this machine, or at a path. */
  async serve(onConnection: (socket: Socket) => void, path?: string): Promise<number> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => undefined);
      onConnection(socket);
    });
    this.servers.push(server);
    server.listen(path === undefined ? { host: '127.0.0.1', port: 0 } : { path });
    await once(server, 'listening');
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  close(): void {
    for (const server of this.servers) server.close();
  }
}

export const echo = (socket: Socket): void => void socket.pipe(socket);

export interface Forwarding {
  readonly running: Running;
  /** Local ports in the order of the specs; none for paths. */
  readonly ports: readonly number[];
  /** The first of them; 0 without any. */
  readonly port: number;
}

/** Runs `orch forward` until it listens. @param words forwards, and options before them */
export async function forward(fleet: TerminalFleet, ...words: readonly string[]): Promise<Forwarding> {
  const running = fleet.sandbox.start(['forward', NODE_NAME, ...words]);
  const wanted = words.filter((word) => /^(?:\d|\/)/.test(word) && word.includes(':')).length;
  const lines = () => running.output().match(/ -> /g)?.length ?? 0;
  await until(() => lines() === wanted || running.process.exitCode !== null, 'it listens');
  const ports = [...running.output().matchAll(/:(\d+) -> /g)].map(([, port]) => Number(port));
  return { running, ports, port: ports[0] ?? 0 };
}

/** Connects to a port or a path. Errors are left to `closed`. */
export function dial(to: number | string): Socket {
  const socket = connect({
    ...(typeof to === 'string' ? { path: to } : { port: to, host: '127.0.0.1' }),
    allowHalfOpen: true,
  });
  socket.on('error', () => undefined);
  return socket;
}

/** Reads to the end, and leaves the other direction open. */
export function readAll(stream: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  return new Promise((resolve, reject) => {
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.on('end', () => resolve(Buffer.concat(chunks)));
    stream.on('close', () => resolve(Buffer.concat(chunks)));
    stream.on('error', reject);
  });
}

/** Sends a word, and returns the socket once it came back. */
export async function echoed(to: number | string): Promise<Socket> {
  const socket = dial(to);
  socket.write('ping');
  const came = await Promise.race([
    once(socket, 'data').then(
      () => true,
      () => false,
    ),
    closed(socket).then(() => false),
  ]);
  if (came) return socket;
  socket.destroy();
  throw new Error(`the connection to ${to} was closed`);
}

/** Resolves when the peer has ended or broken the connection. Unix sockets show no difference. */
export const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.once('close', () => resolve());
    socket.once('end', () => resolve());
  });

/** Returns the audit events of a type, the latest first. */
export async function auditEvents(sandbox: Sandbox, type: string): Promise<readonly AuditEvent[]> {
  return (await sandbox.json<{ readonly events: readonly AuditEvent[] }>(['audit', 'list', '--type', type])).events;
}
