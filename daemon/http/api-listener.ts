/** The Node server under the API: TLS 1.2 and up, or plain HTTP, with limits on slow and large clients. */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { isStreamUrl } from './upgrades.js';

/** PEM texts; `cert` may hold a chain, the server's own certificate first. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

export interface ListenAddress {
  readonly host: string;
  /** 0 picks a free one. */
  readonly port: number;
}

/** Nodes before 24.9 do not know it, and take every request that asks; see `acceptUpgrades`. */
const onlyStreamsUpgrade = { shouldUpgradeCallback: ({ url }: IncomingMessage) => isStreamUrl(url) };

export function createListener(tls: TlsFiles | null, limits: HttpLimits, handle: RequestListener): Server {
  const options: ServerOptions = {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.headerBytes,
    // Refused with a problem document of ours instead.
    requireHostHeader: false,
    noDelay: true,
    ...onlyStreamsUpgrade,
  };
  const server =
    tls === null
      ? createHttpServer(options, handle)
      : createHttpsServer(
          { ...options, ...tls, minVersion: 'TLSv1.2', handshakeTimeout: limits.handshakeTimeoutMs },
          handle,
        );
  // An unknown expectation may be ignored (RFC 9110); by default Node answers with an empty 417.
  server.on('checkExpectation', handle);
  return server;
}

/** @throws Fault `port_in_use` or `invalid_config` naming the address */
export async function listenOn(server: Server, { host, port }: ListenAddress): Promise<AddressInfo> {
  await new Promise<void>((resolve, reject) => {
    const fail = (cause: Error) => reject(notListening({ host, port }, cause));
    server.once('error', fail);
    server.listen({ host, port }, () => {
      server.off('error', fail);
      resolve();
    });
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Fault('internal', 'the API listens on no TCP port');
  return address;
}

function notListening({ host, port }: ListenAddress, cause: Error): Fault {
  const place = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (systemCodeOf(cause) === 'EADDRINUSE') {
    return new Fault('port_in_use', `the API cannot listen on ${place}: another program does`, {
      hint: 'stop it, or choose another port with --api-port',
      cause,
    });
  }
  return new Fault('invalid_config', `the API cannot listen on ${place}: ${messageOf(cause)}`, {
    hint: 'see api_host and api_port',
    cause,
  });
}

/** How much, and for how long, the API takes from a client. */
export interface HttpLimits {
  readonly handshakeTimeoutMs: number;
  /** Until the last header has come. */
  readonly headersTimeoutMs: number;
  /** Until the last byte of the request has come. */
  readonly requestTimeoutMs: number;
  /** How often the two above are looked at. */
  readonly checkIntervalMs: number;
  /** How long an idle connection is kept. */
  readonly keepAliveTimeoutMs: number;
  readonly headerBytes: number;
  readonly urlBytes: number;
  readonly bodyBytes: number;
  /** Body of a request that needs no login. */
  readonly publicBodyBytes: number;
  /** Nesting of a JSON body. */
  readonly jsonDepth: number;
  /** What may wait in memory for one slow reader of a stream. */
  readonly streamBacklogBytes: number;
  /** A reader of events that takes nothing for so long is cut off. */
  readonly stallMs: number;
  /** How long a stream of events is silent at most. */
  readonly heartbeatMs: number;
  /** How long a stop waits for running requests. */
  readonly drainMs: number;
}

export const HTTP_LIMITS: HttpLimits = {
  handshakeTimeoutMs: 10_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  checkIntervalMs: 2_000,
  keepAliveTimeoutMs: 15_000,
  headerBytes: 16 * 1024,
  urlBytes: 4 * 1024,
  bodyBytes: 2 * 1024 * 1024,
  publicBodyBytes: 4 * 1024,
  jsonDepth: 64,
  streamBacklogBytes: 32 * 1024 * 1024,
  stallMs: 30_000,
  heartbeatMs: 15_000,
  drainMs: 8_000,
};
