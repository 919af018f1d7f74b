/** The API server: serves the contract over HTTPS, and drains requests in flight when it stops. */
import type { Server } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { RIGHTS } from '../../src/contract/rights.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { spkiFingerprint } from '../../src/identity/fingerprint.js';
import { Fault } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import type { Authenticate, Authorize, AuthorizeOn } from './access.js';
import { createApiApp, type OnAnswered } from './api-app.js';
import { HTTP_LIMITS, type ListenAddress, listenOn, MIN_TLS, type TlsFiles } from './api-listener.js';
import { InFlight } from './exchange.js';
import type { HandlersFor } from './handler.js';
import type { HttpLimits } from './http-limits.js';
import type { IdempotencyKeys } from './idempotency.js';
import type { AnyHandler } from './run-handler.js';
import { acceptUpgrades, type StreamDoor } from './upgrades.js';

type AnyContract = Readonly<Record<string, RouteSpec>>;

interface ApiServerOptions<C extends AnyContract> extends Pick<Core, 'clock' | 'logger'> {
  readonly contract: C;
  readonly handlers: HandlersFor<C>;
  readonly authenticate: Authenticate;
  readonly authorize: Authorize;
  readonly authorizeOn: AuthorizeOn;
  /** Returns true for the token that may only scrape metrics [default: always false]. */
  readonly isScraper?: (token: string) => boolean;
  /** Called after each answer. */
  readonly onAnswered?: OnAnswered;
  readonly idempotency: IdempotencyKeys;
  readonly newRequestId: NewId;
  readonly listen: ListenAddress;
  /** Certificate and key; null serves plain HTTP. */
  readonly tls: TlsFiles | null;
  /** Overrides of `HTTP_LIMITS`. */
  readonly limits?: Partial<HttpLimits>;
  /** True when a proxy in front terminates TLS; its headers about the client are then trusted. */
  readonly trustProxyTls: boolean;
  /** True checks answers against the contract, for tests and development. */
  readonly validateAnswers: boolean;
  /** Endpoint of the terminal streams; without it there are no streams. */
  readonly streams?: StreamDoor;
}

export interface ApiServer extends Service {
  /** Returns the address it listens on. Throws before the start. */
  address(): AddressInfo;
  /** SHA-256 of the certificate's SPKI in hex; null without TLS. */
  readonly fingerprint: string | null;
  /** Serves new connections with another certificate. Throws for one that cannot be used. */
  renew(tls: TlsFiles): void;
}

/** Creates the API server. Throws when a route has no handler or no `access`, so that none is left open by mistake. */
export function createApiServer<const C extends AnyContract>(options: ApiServerOptions<C>): ApiServer {
  const limits = { ...HTTP_LIMITS, ...options.limits };
  const inFlight = new InFlight();
  const sockets = new Set<Socket>();
  const endpoints = endpointsOf(options.contract, options.handlers);
  let fingerprint = options.tls && spkiFingerprint(options.tls.cert);
  let isClosing = false;
  let address: AddressInfo | null = null;
  let server: Server | null = null;
  return {
    name: 'api',
    get fingerprint() {
      return fingerprint;
    },
    renew: (tls) => {
      if (server instanceof HttpsServer) server.setSecureContext({ ...tls, minVersion: MIN_TLS });
      fingerprint = spkiFingerprint(tls.cert);
    },
    address: () => {
      if (address === null) throw new Error('the API has not started');
      return address;
    },
    start: async () => {
      server = createApiApp({
        isScraper: () => false,
        onAnswered: () => undefined,
        ...options,
        limits,
        endpoints,
        inFlight,
        isClosing: () => isClosing,
      });
      server.on('connection', (socket) => {
        sockets.add(socket);
        socket.once('close', () => sockets.delete(socket));
      });
      if (options.streams) {
        acceptUpgrades(server, {
          ...options,
          door: options.streams,
          limits,
          isTls: options.tls !== null,
          isClosing: () => isClosing,
        });
      }
      address = await listenOn(server, options.listen);
      options.logger.debug('the API listens', {
        host: address.address,
        port: address.port,
        tls_fingerprint: fingerprint,
      });
    },
    stop: async () => {
      if (isClosing || server === null) return;
      isClosing = true;
      await drain(server, { inFlight, sockets, drainMs: limits.drainMs, streams: options.streams });
    },
  };
}

interface DrainOptions {
  readonly inFlight: InFlight;
  readonly sockets: ReadonlySet<Socket>;
  readonly drainMs: number;
  readonly streams: StreamDoor | undefined;
}

/** Stops accepting connections and requests, waits for those in flight, and then closes every connection. */
async function drain(server: Server, { inFlight, sockets, drainMs, streams }: DrainOptions): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  streams?.leave();
  await inFlight.drained(drainMs);
  inFlight.cancel(new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon' }));
  // Cancelled handlers may still answer.
  await inFlight.drained(LAST_WORDS_MS);
  await closedStreams(streams);
  // `server.closeAllConnections` is not enough: it misses connections still in their TLS handshake.
  for (const socket of sockets) socket.destroy();
  await closed;
}

/** Waits for clients to acknowledge the close of their streams, which takes only a moment. */
async function closedStreams(streams: StreamDoor | undefined): Promise<void> {
  for (let waited = 0; waited < FAREWELL_MS && (streams?.size ?? 0) > 0; waited += FAREWELL_STEP_MS) {
    await new Promise((resolve) => setTimeout(resolve, FAREWELL_STEP_MS));
  }
}

const LAST_WORDS_MS = 250;
const FAREWELL_MS = 1_000;
const FAREWELL_STEP_MS = 20;
const ACCESS: readonly unknown[] = ['public', ...RIGHTS, 'admin'];

function endpointsOf<C extends AnyContract>(contract: C, handlers: HandlersFor<C>) {
  return Object.entries(contract).map(([id, route]) => {
    // Each handler takes the call of its own route, a pairing that only the contract's types express.
    const handler = handlers[id] as unknown as AnyHandler | undefined;
    if (!ACCESS.includes(route.access)) throw new Error(`the route ${id} does not say who may call it`);
    if (typeof handler !== 'function') throw new Error(`the route ${id} has no handler`);
    return { route, handler };
  });
}
