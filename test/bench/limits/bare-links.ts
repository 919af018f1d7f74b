/**
 * The limit of the agent link: WebSockets over TLS with keys at both ends and nothing else. One process of this program listens,
 * others connect to it.
 */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';
import { type RawData, WebSocket, WebSocketServer } from 'ws';
import { Backoff } from '../../../src/agent/link/backoff.js';
import { selfSignedEd25519 } from '../../../src/identity/certificate.js';
import { generateKey, privateKeyPem } from '../../../src/identity/private-key.js';
import { answerQuestions } from '../programs.js';

export type BareLinksQuestion =
  /** Answers with the port. */
  | { readonly do: 'listen'; readonly port: number }
  /** Connects so many clients, which come back whenever they are cut off. */
  | { readonly do: 'connect'; readonly port: number; readonly clients: number; readonly atOnce: number }
  /** Sends every client a message, which it sends back. Answers when all have, with the milliseconds. */
  | { readonly do: 'exchange'; readonly bytes: number }
  /** Answers with the moments at which clients were connected since the last `reset`, in Unix milliseconds. */
  | { readonly do: 'arrivals' }
  | { readonly do: 'reset' };

const HELLO = 'x'.repeat(400);

const clients = new Set<WebSocket>();
let onEcho: () => void = () => undefined;
let arrivals: number[] = [];

function listen(port: number): Promise<number> {
  const key = generateKey();
  const server = createServer({
    key: privateKeyPem(key),
    cert: selfSignedEd25519(key).certPem,
    minVersion: 'TLSv1.3',
    requestCert: true,
    rejectUnauthorized: false,
  });
  new WebSocketServer({ server, perMessageDeflate: false }).on('connection', (socket) => {
    clients.add(socket);
    socket.on('close', () => clients.delete(socket));
    socket.on('error', () => undefined);
    // A hello and its answer are part of a connection, as they are in the product.
    socket.once('message', () => {
      socket.send(HELLO);
      socket.on('message', () => onEcho());
    });
  });
  return new Promise((resolve) => {
    server.listen({ port, host: '127.0.0.1', backlog: 511 }, () => resolve((server.address() as AddressInfo).port));
  });
}

function exchange(bytes: number): Promise<number> {
  const message = 'x'.repeat(bytes);
  const start = performance.now();
  let missing = clients.size;
  return new Promise((resolve) => {
    onEcho = () => {
      missing -= 1;
      if (missing === 0) resolve(performance.now() - start);
    };
    for (const client of clients) client.send(message);
  });
}

/** Connects again and again. `onConnected` is called each time. */
async function runClient(port: number, onConnected: () => void): Promise<void> {
  const key = generateKey();
  const options: ConnectionOptions = {
    host: '127.0.0.1',
    port,
    key: privateKeyPem(key),
    cert: selfSignedEd25519(key).certPem,
    minVersion: 'TLSv1.3',
    rejectUnauthorized: false,
    ca: [],
  };
  const backoff = new Backoff({ random: Math.random });
  for (;;) {
    const since = performance.now();
    await new Promise<void>((resolve) => {
      const connection = connect(options);
      connection.setNoDelay(true);
      connection.on('error', () => resolve());
      connection.once('secureConnect', () => {
        const socket = new WebSocket('ws://bare/', { createConnection: () => connection, perMessageDeflate: false });
        socket.on('error', () => undefined);
        socket.once('open', () => socket.send(HELLO));
        socket.once('message', () => {
          arrivals.push(Date.now());
          onConnected();
          socket.on('message', (data: RawData) => socket.send(data.toString()));
        });
        socket.on('close', () => resolve());
      });
    });
    backoff.ended(performance.now() - since);
    await new Promise((resolve) => setTimeout(resolve, backoff.next()));
  }
}

async function connectClients(port: number, count: number, atOnce: number): Promise<void> {
  let rest = count;
  const connectRest = async (): Promise<void> => {
    while (rest > 0) {
      rest -= 1;
      await new Promise<void>((resolve) => void runClient(port, resolve));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, connectRest));
}

answerQuestions(async (question: BareLinksQuestion): Promise<number | readonly number[] | null> => {
  switch (question.do) {
    case 'listen':
      return listen(question.port);
    case 'exchange':
      return exchange(question.bytes);
    case 'arrivals':
      return arrivals;
    case 'reset':
      arrivals = [];
      return null;
    case 'connect':
      await connectClients(question.port, question.clients, question.atOnce);
      return null;
  }
});
