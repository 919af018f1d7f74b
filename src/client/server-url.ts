/** Parses and formats addresses of orchestrators. */
import { isIP } from 'node:net';
import { Fault } from '../kernel/fault.js';
import { API_PORT } from '../kernel/ports.js';

/**
 * Parses an `https` or `http` URL, or `HOST[:PORT]` as `https`. Keeps a path without its trailing slash.
 * @param from names the flag, variable or profile in messages
 * @throws Fault `usage`
 */
export function parseServerUrl(text: string, from: string): URL {
  const bare = !/^[a-z][a-z0-9+.-]*:\/\//i.test(text.trim());
  const url = parse(bare ? `https://${text.trim()}` : text.trim());
  const refuse = (why: string) =>
    new Fault('usage', `${from}: ${JSON.stringify(text)} ${why}`, { hint: `such as https://orch.example:${API_PORT}` });
  if (!url || !/^[a-z0-9_[]/i.test(url.hostname)) throw refuse('is no URL');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refuse('is neither https nor http');
  if (url.username !== '' || url.password !== '') throw refuse('has a user name in it, which the API has no use for');
  if (url.search !== '' || url.hash !== '') throw refuse('has more after its path than an address has');
  if (bare && url.port === '' && !/:443(\/|$)/.test(text)) url.port = String(API_PORT);
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url;
}

/** Returns true when two addresses name the same server. */
export const sameServer = (a: URL, b: URL): boolean => a.href === b.href;

/** Formats the address for messages and for keys, without a trailing slash. */
export const urlText = (url: URL): string => url.href.replace(/\/$/, '');

/** Returns the host for `net` and `tls`: an IPv6 address without brackets. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

/** Returns true for `localhost`, names below it, and the loopback networks. */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith('127.');
  return host === '::1' || host === 'localhost' || host.endsWith('.localhost');
}

function parse(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}
