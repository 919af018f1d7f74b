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
import type { HttpLimits } from './http-limits.js';
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
