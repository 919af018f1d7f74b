/** A real HTTP or HTTPS server on loopback that takes what channels send, and misbehaves when it is told to. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { until } from '../support/orch.js';

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What it does with a request once it has it all. */
export type Behaviour = (response: ServerResponse, socket: Socket) => void;

export interface Receiver {
  readonly port: number;
  /** With `127.0.0.1` as host. */
  readonly url: string;
  readonly requests: readonly Received[];
  /** Requests that have not been answered yet at the same time, at most. */
  readonly most: number;
  /** From now on. */
  answer(behaviour: Behaviour): void;
  /** Waits for so many requests. */
  has(count: number): Promise<readonly Received[]>;
  stop(): Promise<void>;
}

export const status =
  (code: number, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  (response) =>
    void response.writeHead(code, headers).end('seen');

export async function startReceiver(tls?: { readonly cert: string; readonly key: string }): Promise<Receiver> {
  const requests: Received[] = [];
  const sockets = new Set<Socket>();
  let behaviour = status(200);
  let open = 0;
  let most = 0;
  const server = tls ? createSecureServer(tls) : createServer();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response: ServerResponse) => {
    open += 1;
    most = Math.max(most, open);
    response.on('close', () => {
      open -= 1;
    });
    const chunks: Buffer[] = [];
    request.on('error', () => undefined);
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      requests.push({ method, path: url, headers, body: Buffer.concat(chunks).toString() });
      behaviour(response, request.socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  onTestFinished(stop);
  return {
    port,
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requests,
    get most() {
      return most;
    },
    answer: (next) => {
      behaviour = next;
    },
    has: async (count) => {
      await until(() => requests.length >= count, `the receiver has ${count} requests`);
      return requests;
    },
    stop,
  };
}
