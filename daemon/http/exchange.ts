/** What the adapter knows of one request from its first byte on. */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import type {} from 'fastify';
import type { Session } from './access.js';
import type { Cancellation } from './cancellation.js';

export interface Exchange {
  readonly requestId: string;
  /** Of the client: the peer, or behind a trusted proxy the last hop that the proxy names. */
  readonly address: string | null;
  /** As the client sent it; undefined when it did not. */
  readonly contentType: string | undefined;
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

declare module 'fastify' {
  interface FastifyRequest {
    exchange: Exchange;
  }
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
export function baseUrlOf(request: IncomingMessage, trustProxy: boolean): string {
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
