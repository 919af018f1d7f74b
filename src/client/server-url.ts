/** The address of an orchestrator as people give it. */
import { isIP } from 'node:net';
import { Fault } from '../kernel/fault.js';

/** Port of the API where a host is given without a scheme. */
const STANDARD_PORT = '4748';

/**
 * An `https` or `http` URL, or `HOST[:PORT]` for the former. A path is kept, without the slash at its end.
 * @param from names the flag, variable or profile in messages
 * @throws Fault `usage`
 */
export function parseServerUrl(text: string, from: string): URL {
  const bare = !/^[a-z][a-z0-9+.-]*:\/\//i.test(text.trim());
  const url = parse(bare ? `https://${text.trim()}` : text.trim());
  const refuse = (why: string) =>
    new Fault('usage', `${from}: ${JSON.stringify(text)} ${why}`, { hint: 'such as https://orch.example:4748' });
  if (!url || !/^[a-z0-9_[]/i.test(url.hostname)) throw refuse('is no URL');
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refuse('is neither https nor http');
  if (url.username !== '' || url.password !== '') throw refuse('has a user name in it, which the API has no use for');
  if (url.search !== '' || url.hash !== '') throw refuse('has more after its path than an address has');
  if (bare && url.port === '' && !/:443(\/|$)/.test(text)) url.port = STANDARD_PORT;
  url.pathname = url.pathname.replace(/\/+$/, '');
  return url;
}

/** Tells whether two addresses are the same server. */
export const sameServer = (a: URL, b: URL): boolean => a.href === b.href;

/** The address for messages and for keys: without a slash at the end. */
export const urlText = (url: URL): string => url.href.replace(/\/$/, '');

/** The host as `net` and `tls` want it: an IPv6 address without brackets. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

/** `localhost`, names below it, and the loopback networks. */
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
