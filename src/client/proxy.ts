/** Which proxy leads to a server: `HTTPS_PROXY` and `NO_PROXY`, in capitals or not. */
import { BlockList, isIP } from 'node:net';
import { Fault } from '../kernel/fault.js';
import type { Environment } from './directories.js';
import { hostOf, isLoopback } from './server-url.js';

/** The proxy for a URL, or null. This machine itself is never behind one. Throws `usage` for a variable that is no URL. */
export function proxyFor(url: URL, env: Environment): URL | null {
  const name = env.https_proxy ? 'https_proxy' : 'HTTPS_PROXY';
  const given = env[name];
  if (url.protocol !== 'https:' || !given || isLoopback(hostOf(url))) return null;
  if (isExcepted(url, env.no_proxy || env.NO_PROXY || '')) return null;
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`;
  if (URL.canParse(text)) {
    const proxy = new URL(text);
    if (proxy.protocol === 'http:' || proxy.protocol === 'https:') return proxy;
  }
  // Not the value: it may hold a password.
  throw new Fault('usage', `${name} is no http or https URL`, { hint: 'such as http://proxy.example:3128' });
}

/** The proxy for messages, without user name and password. */
export const proxyText = (proxy: URL): string => `${proxy.protocol}//${proxy.host}`;

function isExcepted(url: URL, list: string): boolean {
  const host = hostOf(url);
  const port = url.port || '443';
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => entry === '*' || inNetwork(host, entry) || matches(host, port, entry.toLowerCase()));
}

/** `host`, `.domain`, `*.domain` (both match the domain and what is below it), each with `:port` or without. */
function matches(host: string, port: string, entry: string): boolean {
  const [, name = '', onlyPort] = /^\[?([^\]]*?)\]?(?::(\d+))?$/.exec(isIP(entry) === 6 ? `[${entry}]` : entry) ?? [];
  if (onlyPort !== undefined && onlyPort !== port) return false;
  const domain = name.replace(/^\*?\./, '');
  return host === domain || (isIP(host) === 0 && host.endsWith(`.${domain}`));
}

function inNetwork(host: string, entry: string): boolean {
  const [, network = '', bits = ''] = /^(.+)\/(\d{1,3})$/.exec(entry) ?? [];
  const family = isIP(network);
  if (family === 0 || isIP(host) !== family || Number(bits) > (family === 4 ? 32 : 128)) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const networks = new BlockList();
  networks.addSubnet(network, Number(bits), type);
  return networks.check(host, type);
}
