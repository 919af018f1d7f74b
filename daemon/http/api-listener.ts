/** The Node server below the API: TLS 1.2 or later, or plain HTTP, with limits on slow and large requests. */
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
import type { HttpLimits } from './http-limits.js';
import { isStreamUrl } from './upgrades.js';

/** Both fields are PEM; `cert` may hold a chain that begins with the server's own certificate. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

export interface ListenAddress {
  readonly host: string;
  /** TCP port; 0 chooses a free one. */
  readonly port: number;
}

/** Oldest version of TLS that the API speaks. */
export const MIN_TLS = 'TLSv1.2';

/** Ignored by Node before 24.9, which emits every upgrade request; see `acceptUpgrades`. */
const onlyStreamsUpgrade = { shouldUpgradeCallback: ({ url }: IncomingMessage) => isStreamUrl(url) };

export function createListener(tls: TlsFiles | null, limits: HttpLimits, handle: RequestListener): Server {
  const options: ServerOptions = {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: limits.checkIntervalMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    maxHeaderSize: limits.headerBytes,
    // The API answers with its own problem document instead.
    requireHostHeader: false,
    noDelay: true,
    ...onlyStreamsUpgrade,
  };
  const server =
    tls === null
      ? createHttpServer(options, handle)
      : createHttpsServer(
          { ...options, ...tls, minVersion: MIN_TLS, handshakeTimeout: limits.handshakeTimeoutMs },
          handle,
        );
  // A server may ignore an unknown expectation (RFC 9110); Node's default is an empty 417.
  server.on('checkExpectation', handle);
  return server;
}

/** Listens on the address. Throws `port_in_use` or `invalid_config`, naming the address. */
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
