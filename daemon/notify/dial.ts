/** Connects to a checked address of a host, without a second lookup that could return another address. */
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { messageOf } from '../../src/kernel/fault.js';
import { parseIpAddress, sameAddress } from '../../src/kernel/ip-network.js';
import type { AddressPolicy } from './address-policy.js';
import { DeliveryProblem } from './delivery-log.js';

export interface DialOptions {
  readonly policy: AddressPolicy;
  /** Returns every address of a name. */
  readonly resolve: (host: string) => Promise<readonly string[]>;
  /** PEM of the trusted certificate authorities; undefined for the system's. */
  readonly authorities?: string | undefined;
}

/** Connect timeouts in milliseconds: of the last address, and of an address with others to try after it. */
const CONNECT_MS = 5_000;
const ADDRESS_MS = 2_000;

/**
 * Returns a connected socket, over TLS for an https URL. Rejects with the signal's reason when it is aborted.
 * @throws DeliveryProblem, never with `timeout`: the caller owns the signal and knows why it aborted
 */
export async function dial(url: URL, options: DialOptions, signal: AbortSignal): Promise<Socket> {
  const isTls = url.protocol === 'https:';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = url.port === '' ? (isTls ? 443 : 80) : Number(url.port);
  const addresses = isIP(host) === 0 ? await resolved(host, options, signal) : [host];
  for (const address of addresses) {
    const refusal = options.policy.refusal(address, { port, isTls });
    if (refusal !== null) throw new DeliveryProblem('address_not_allowed', refusal);
  }
  const socket = await firstOf(addresses, port, signal);
  return isTls ? secured(socket, { host, authorities: options.authorities, signal }) : socket;
}

async function resolved(host: string, { resolve }: DialOptions, signal: AbortSignal): Promise<readonly string[]> {
  try {
    const addresses = await Promise.race([resolve(host), aborted(signal)]);
    if (addresses.length > 0) return addresses;
  } catch (error) {
    if (signal.aborted) throw error;
  }
  throw new DeliveryProblem('unresolvable', `the name ${host} has no address`);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    if (signal.aborted) reject(signal.reason);
  });
}

async function firstOf(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  let problem: unknown;
  for (const [index, address] of addresses.entries()) {
    const isLast = index === addresses.length - 1;
    const turn = deadlineOf(isLast ? CONNECT_MS : ADDRESS_MS, signal);
    try {
      return await connected(address, port, turn.signal);
    } catch (error) {
      if (signal.aborted) throw error;
      problem = error;
    } finally {
      turn.clear();
    }
  }
  if (problem instanceof DeliveryProblem) throw problem;
  throw new DeliveryProblem('unreachable', `no connection: ${messageOf(problem)}`);
}

async function connected(address: string, port: number, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host: address, port, noDelay: true });
  await ready(socket, 'connect', signal);
  const [wanted, remote] = [parseIpAddress(address), parseIpAddress(socket.remoteAddress ?? '')];
  if (wanted !== null && remote !== null && sameAddress(wanted, remote)) return socket;
  socket.destroy();
  throw new DeliveryProblem('address_not_allowed', `the connection to ${address} leads elsewhere`);
}

interface SecureOptions {
  readonly host: string;
  readonly authorities: string | undefined;
  readonly signal: AbortSignal;
}

async function secured(socket: Socket, { host, authorities, signal }: SecureOptions): Promise<Socket> {
  const secure = connectTls({
    socket,
    host,
    servername: isIP(host) === 0 ? host : '',
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    ...(authorities === undefined ? {} : { ca: authorities }),
  });
  try {
    await ready(secure, 'secureConnect', signal);
    return secure;
  } catch (error) {
    socket.destroy();
    if (signal.aborted) throw error;
    throw new DeliveryProblem('tls_failed', `the TLS connection to ${host} failed: ${messageOf(error)}`);
  }
}

/** Resolves on the given event of a socket. On an error, a close or an abort it destroys the socket and rejects. */
function ready(socket: Socket, event: 'connect' | 'secureConnect', signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) => {
      settle();
      socket.on('error', () => undefined);
      socket.destroy();
      reject(error);
    };
    const abort = () => fail(signal.reason);
    const close = () => fail(new Error('the connection was closed'));
    const done = () => {
      settle();
      resolve();
    };
    const settle = () => {
      socket.off('error', fail).off('close', close).off(event, done);
      signal.removeEventListener('abort', abort);
    };
    socket.on('error', fail).on('close', close).on(event, done);
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
  });
}

/** A signal that aborts after a timeout, or together with an outer signal. */
interface Deadline {
  readonly signal: AbortSignal;
  /** Returns true once the timeout has expired. */
  hasExpired(): boolean;
  /** Releases the timer and the listener on the outer signal; the owner must call it. */
  clear(): void;
}

/** Returns a deadline `ms` milliseconds from now. */
export function deadlineOf(ms: number, outer: AbortSignal): Deadline {
  const controller = new AbortController();
  let over = false;
  const timer = setTimeout(() => {
    over = true;
    controller.abort(new Error('the time is up'));
  }, ms);
  const abort = () => controller.abort(outer.reason);
  outer.addEventListener('abort', abort);
  if (outer.aborted) abort();
  return {
    signal: controller.signal,
    hasExpired: () => over,
    clear: () => {
      clearTimeout(timer);
      outer.removeEventListener('abort', abort);
    },
  };
}
