/** One request and its answer: the client, the timing and the cancellation. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Fault } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import type { Rights } from '../core/rights.js';
import type { Session } from './session.js';

export class Exchange {
  readonly request: IncomingMessage;
  /** Response on which the standard headers are already set. */
  readonly response: ServerResponse;
  /** ID of the route; `none` when no route matches. */
  routeId = 'none';
  readonly requestId: string;
  /** Address of the client: the peer, or behind a trusted proxy the last hop that the proxy names. */
  readonly address: string | null;
  /** Milliseconds on the monotonic clock. */
  readonly startedAt: number;
  /**
   * Cancelled when the client disconnects or the server stops. After `keepsRunning` is set, a disconnect no longer
   * cancels.
   */
  readonly cancellation = new Cancellation();
  /** True completes the handler after a disconnect, because the client can retry for the answer. */
  keepsRunning = false;
  /** Session of the caller; null on public routes. */
  session: Session | null = null;
  token: string | null = null;
  /** Set by the handler of an answer that stays open: throws when the rights of now no longer permit it. */
  stillPermitted: ((rights: Rights) => Promise<void>) | null = null;
  private readonly trustProxyTls: boolean;

  constructor(request: IncomingMessage, response: ServerResponse, options: BeginOptions) {
    const { clock, newRequestId, trustProxyTls } = options;
    this.request = request;
    this.response = response;
    this.requestId = newRequestId();
    this.address = clientAddress(request, trustProxyTls);
    this.startedAt = clock.monotonic();
    this.trustProxyTls = trustProxyTls;
  }

  /** True when the request could not be read in transit: it came over TLS or from this machine. */
  get isPrivate(): boolean {
    return isPrivate(this.request, this.trustProxyTls);
  }

  /** Scheme and authority that the client used: `https://host:port`. */
  get baseUrl(): string {
    return baseUrlOf(this.request, this.trustProxyTls);
  }
}

/** Returns true for a request over TLS, here or by the word of a trusted proxy, or without a network in between. */
export function isPrivate({ headers, socket }: IncomingMessage, trustProxy: boolean): boolean {
  const isTls = socket instanceof TLSSocket;
  if (!trustProxy) return isTls || isLoopback(plain(socket.remoteAddress));
  const header = headers['x-forwarded-proto'];
  if (header === undefined) return isTls;
  const hops = (Array.isArray(header) ? header.join(',') : header).split(',');
  return hops.at(-1)?.trim().toLowerCase() === 'https';
}

const AUTHORITY = /^[\w.:[\]-]+$/;

/** Returns the scheme and authority by which the client reached this server, without a trailing slash. */
function baseUrlOf(request: IncomingMessage, trustProxy: boolean): string {
  const { headers, socket } = request;
  const isTls = socket instanceof TLSSocket || (trustProxy && isPrivate(request, true));
  const scheme = isTls ? 'https' : 'http';
  const own = `${scheme}://${headers.host ?? ''}`;
  // Rejects a Host header that is no plain authority, because the result appears in answers.
  if (AUTHORITY.test(headers.host ?? '') && URL.canParse(own)) return own;
  const { localAddress = '127.0.0.1', localPort = 0 } = socket;
  return `${scheme}://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

const isLoopback = (address: string | null): boolean => address === '::1' || address?.startsWith('127.') === true;

/** Returns the last hop of `X-Forwarded-For` when the proxy is trusted, else the peer's address. */
export function clientAddress(request: IncomingMessage, trustProxy: boolean): string | null {
  const peer = request.socket.remoteAddress;
  if (!trustProxy) return plain(peer);
  const header = request.headers['x-forwarded-for'];
  const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',');
  return plain(hops.at(-1)?.trim()) ?? plain(peer);
}

/** Returns the address with an IPv4-mapped prefix removed, or null when it is no IP address. */
function plain(address: string | undefined): string | null {
  const unwrapped = address?.replace(/^::ffff:(?=\d+\.)/i, '').replace(/^\[(.*)\](:\d+)?$/, '$1');
  return unwrapped && isIP(unwrapped) > 0 ? unwrapped : null;
}

interface BeginOptions extends Pick<Core, 'clock'> {
  readonly inFlight: InFlight;
  readonly newRequestId: NewId;
  readonly trustProxyTls: boolean;
}

/** Registers a new request as in flight and sets the standard headers. */
export function beginExchange(request: IncomingMessage, response: ServerResponse, options: BeginOptions): Exchange {
  const { inFlight } = options;
  const exchange = new Exchange(request, response, options);
  const { cancellation } = exchange;
  for (const [name, value] of STANDARD_HEADERS) response.setHeader(name, value);
  response.setHeader('x-request-id', exchange.requestId);
  const held = inFlight.add(response, cancellation);
  // A write after a disconnect is no failure of the request.
  response.on('error', () => undefined);
  response.once('close', () => {
    inFlight.remove(held);
    if (response.writableFinished || exchange.keepsRunning) return;
    cancellation.cancel(new Fault('cancelled', 'the client went away'));
  });
  return exchange;
}

/** Cancellation that creates its abort signal on first use, because most requests never need it. */
class Cancellation {
  private controller: AbortController | null = null;
  private cancelled: { readonly reason: unknown } | null = null;

  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.cancelled) this.controller.abort(this.cancelled.reason);
    }
    return this.controller.signal;
  }

  /** Cancels; only the first reason counts. */
  cancel(reason: unknown): void {
    this.cancelled ??= { reason };
    this.controller?.abort(reason);
  }
}

interface InFlightRequest {
  readonly response: ServerResponse;
  readonly cancellation: Cancellation;
  /** Index in the list of requests in flight. */
  place: number;
}

/**
 * Requests in flight, so that a stop can drain them. They are in an array, because a map that changes with every
 * request leaves a chain of old tables behind it, which keep every finished request alive until a full collection.
 */
export class InFlight {
  private readonly requests: InFlightRequest[] = [];
  private idle: (() => void) | null = null;

  add(response: ServerResponse, cancellation: Cancellation): InFlightRequest {
    const request = { response, cancellation, place: this.requests.length };
    this.requests.push(request);
    return request;
  }

  /** Removes a request whose answer was sent or whose connection is closed. Call it once. */
  remove({ place }: InFlightRequest): void {
    const last = this.requests.pop();
    if (last !== undefined && last.place !== place) {
      this.requests[place] = last;
      last.place = place;
    }
    if (this.requests.length === 0) this.idle?.();
  }

  /** Returns true when an answer on this socket has begun. */
  isAnswering(socket: unknown): boolean {
    return this.requests.some(({ response }) => response.socket === socket && response.headersSent);
  }

  /** Resolves when no request is in flight, or after `ms` milliseconds. */
  async drained(ms: number): Promise<void> {
    if (this.requests.length === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Cancels every handler still running. */
  cancel(reason: Fault): void {
    for (const { cancellation } of [...this.requests]) cancellation.cancel(reason);
  }
}

/**
 * Headers of every answer, besides `X-Request-Id`. There are no CORS headers, because pages of other sites may not
 * use the API.
 */
export const STANDARD_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
];

/** Logs a request: successful reads at level debug, all others at info. */
export function logRequest(exchange: Exchange, { logger, clock }: Pick<Core, 'clock' | 'logger'>): void {
  const { request, response, requestId, startedAt, session, address } = exchange;
  const status = response.statusCode;
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  logger[isRead && status < 500 ? 'debug' : 'info']('request', {
    request_id: requestId,
    method: request.method,
    // Without the query, which may hold names that people search for.
    path: request.url?.split('?')[0]?.slice(0, 512),
    status,
    duration_ms: Math.round(clock.monotonic() - startedAt),
    operator_id: session?.operator.operator_id ?? null,
    address,
  });
}
