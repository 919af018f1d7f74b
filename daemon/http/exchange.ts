/** One request and its answer, from the first byte on: which client, for how long, and what cancels it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import { Fault } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import type { Session } from './access.js';

export interface Exchange {
  readonly request: IncomingMessage;
  /** Holds the standard headers. */
  readonly response: ServerResponse;
  /** ID of the route; `none` where no route matches. */
  routeId: string;
  readonly requestId: string;
  /** Of the client: the peer, or behind a trusted proxy the last hop that the proxy names. */
  readonly address: string | null;
  /** Nobody on the way could read it: it came over TLS, or from this machine. */
  readonly isPrivate: boolean;
  /** `https://host:port` as the client has named this server. */
  readonly baseUrl: string;
  /** Milliseconds of the monotonic clock. */
  readonly startedAt: number;
  /** Cancelled when the client goes away or the server stops; not by the former once `keepsRunning`. */
  readonly cancellation: Cancellation;
  /** The answer is wanted even when the client goes away, because it can ask for it again. */
  keepsRunning: boolean;
  /** null on public routes. */
  session: Session | null;
  token: string | null;
}

/** Whether a request came over TLS, here or as a trusted proxy says, or without a network in between. */
export function isPrivate({ headers, socket }: IncomingMessage, trustProxy: boolean): boolean {
  const isTls = socket instanceof TLSSocket;
  if (!trustProxy) return isTls || isLoopback(plain(socket.remoteAddress));
  const header = headers['x-forwarded-proto'];
  if (header === undefined) return isTls;
  const hops = (Array.isArray(header) ? header.join(',') : header).split(',');
  return hops.at(-1)?.trim().toLowerCase() === 'https';
}

const AUTHORITY = /^[\w.:[\]-]+$/;

/** Scheme and authority under which the client has reached this server, without a slash at the end. */
function baseUrlOf(request: IncomingMessage, trustProxy: boolean): string {
  const { headers, socket } = request;
  const isTls = socket instanceof TLSSocket || (trustProxy && isPrivate(request, true));
  const scheme = isTls ? 'https' : 'http';
  const own = `${scheme}://${headers.host ?? ''}`;
  // What is no plain authority has no place in an address that we give out.
  if (AUTHORITY.test(headers.host ?? '') && URL.canParse(own)) return own;
  const { localAddress = '127.0.0.1', localPort = 0 } = socket;
  return `${scheme}://${localAddress.includes(':') ? `[${localAddress}]` : localAddress}:${localPort}`;
}

const isLoopback = (address: string | null): boolean => address === '::1' || address?.startsWith('127.') === true;

/** The address behind the last hop of `X-Forwarded-For` when the proxy is trusted, else the peer's. */
export function clientAddress(request: IncomingMessage, trustProxy: boolean): string | null {
  const peer = request.socket.remoteAddress;
  if (!trustProxy) return plain(peer);
  const header = request.headers['x-forwarded-for'];
  const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',');
  return plain(hops.at(-1)?.trim()) ?? plain(peer);
}

/** An IPv4 address without its IPv6 wrapping; null for what is no address. */
function plain(address: string | undefined): string | null {
  const unwrapped = address?.replace(/^::ffff:(?=\d+\.)/i, '').replace(/^\[(.*)\](:\d+)?$/, '$1');
  return unwrapped && isIP(unwrapped) > 0 ? unwrapped : null;
}

interface BeginOptions extends Pick<Core, 'clock'> {
  readonly inFlight: InFlight;
  readonly newRequestId: NewId;
  readonly trustProxyTls: boolean;
}

/** Registers a new request as in flight and sets the headers that every answer has. */
export function beginExchange(request: IncomingMessage, response: ServerResponse, options: BeginOptions): Exchange {
  const { clock, inFlight, newRequestId, trustProxyTls } = options;
  const cancellation = new Cancellation();
  const exchange: Exchange = {
    request,
    response,
    routeId: 'none',
    requestId: newRequestId(),
    address: clientAddress(request, trustProxyTls),
    isPrivate: isPrivate(request, trustProxyTls),
    baseUrl: baseUrlOf(request, trustProxyTls),
    startedAt: clock.monotonic(),
    cancellation,
    keepsRunning: false,
    session: null,
    token: null,
  };
  for (const [name, value] of STANDARD_HEADERS) response.setHeader(name, value);
  response.setHeader('x-request-id', exchange.requestId);
  inFlight.add(response, cancellation);
  // A write after the client has gone is no failure of the request.
  response.on('error', () => undefined);
  response.once('close', () => {
    inFlight.remove(response);
    if (response.writableFinished || exchange.keepsRunning) return;
    cancellation.cancel(new Fault('cancelled', 'the client went away'));
  });
  return exchange;
}

/** An abort signal that is made when somebody looks at it: most requests are over before anybody does. */
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

  /** The first reason counts. */
  cancel(reason: unknown): void {
    this.cancelled ??= { reason };
    this.controller?.abort(reason);
  }
}

/** The requests that are being served, so that a stop can wait for them. */
export class InFlight {
  private readonly requests = new Map<ServerResponse, Cancellation>();
  private idle: (() => void) | null = null;

  add(response: ServerResponse, cancellation: Cancellation): void {
    this.requests.set(response, cancellation);
  }

  /** Its answer is sent, or its connection is gone. */
  remove(response: ServerResponse): void {
    this.requests.delete(response);
    if (this.requests.size === 0) this.idle?.();
  }

  /** True when an answer on this socket has begun. */
  isAnswering(socket: unknown): boolean {
    return [...this.requests.keys()].some((response) => response.socket === socket && response.headersSent);
  }

  /** Resolves when nothing is in flight any more, or after that many milliseconds. */
  async drained(ms: number): Promise<void> {
    if (this.requests.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Tells every handler that is still running to end. */
  cancel(reason: Fault): void {
    for (const cancellation of this.requests.values()) cancellation.cancel(reason);
  }
}

/** Headers of every answer, beside `X-Request-Id`. There are no CORS headers: pages of other sites have no business here. */
export const STANDARD_HEADERS: readonly (readonly [name: string, value: string])[] = [
  ['cache-control', 'no-store'],
  ['x-content-type-options', 'nosniff'],
];

/** Writes one log line for a request: successful reads at level debug, everything else at info. */
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
