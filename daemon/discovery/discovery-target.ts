/** The one agent that a discovery packet is for, as operators write it. */

import { isIPv6 } from 'node:net';
import { Fault } from '../../src/kernel/fault.js';
import { DISCOVERY_PORT } from '../../src/kernel/ports.js';

export interface DiscoveryTarget {
  readonly host: string;
  readonly port: number;
}

const BRACKETED = /^\[([0-9A-Fa-f:.]+(?:%[A-Za-z0-9_.-]{1,32})?)\]:(\d{1,5})$/;
const PLAIN = /^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9.])?):(\d{1,5})$/;

/** `HOST:PORT` or `[IPv6]:PORT`. Throws `invalid_body`. */
export function parseDiscoveryTarget(text: string): DiscoveryTarget {
  const bracketed = BRACKETED.exec(text);
  const [, host = '', port] = bracketed ?? PLAIN.exec(text) ?? [];
  const isHost = bracketed === null ? host !== '' : isIPv6(host);
  if (isHost && Number(port) >= 1 && Number(port) <= 65_535) return { host, port: Number(port) };
  const message = `must be host:port of one agent, such as 10.0.0.7:${DISCOVERY_PORT} or [2001:db8::7]:${DISCOVERY_PORT}`;
  throw new Fault('invalid_body', `the body is not valid: /target ${message}`, {
    errors: [{ path: '/target', message }],
  });
}

/** `host:port`, with brackets around an IPv6 address. */
export const placeText = ({ host, port }: DiscoveryTarget): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
