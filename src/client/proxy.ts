/** Chooses a proxy by `HTTPS_PROXY` and `NO_PROXY`, in upper or lower case, and opens tunnels through it. */

import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { BlockList, isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { Fault, isFault, messageOf, systemCodeOf } from '../kernel/fault.js';
import type { Environment } from './operator-files.js';
import { hostOf, isLoopback, urlText } from './server-url.js';

/** Returns the proxy for a URL, or null. Loopback never uses one. Throws `usage` for a variable that is no URL. */
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
  // The message leaves the value out, because it may contain a password.
  throw new Fault('usage', `${name} is no http or https URL`, { hint: 'such as http://proxy.example:3128' });
}

/** Formats the proxy for messages, without user name and password. */
export const proxyText = (proxy: URL): string => `${proxy.protocol}//${proxy.host}`;

function isExcepted(url: URL, list: string): boolean {
  const host = hostOf(url);
  const port = url.port || '443';
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => entry === '*' || inNetwork(host, entry) || matches(host, port, entry.toLowerCase()));
}

/** Matches `host`, `.domain` or `*.domain` (both also match the domain itself), each with an optional `:port`. */
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

interface TunnelOptions {
  readonly proxy: URL;
  readonly url: URL;
  readonly signal: AbortSignal;
}

/**
 * Opens a connection to the server's port with CONNECT. The proxy learns only host and port.
 * Throws Fault `unreachable` that names the proxy.
 */
export async function openTunnel({ proxy, url, signal }: TunnelOptions): Promise<Duplex> {
  const target = `${url.hostname}:${url.port || '443'}`;
  const start = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  const request = start({
    method: 'CONNECT',
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
    path: target,
    headers: { host: target, ...credentials(proxy) },
    agent: false,
    signal,
  });
  try {
    return await connected(request, proxy, target);
  } catch (error) {
    if (isFault(error) || signal.aborted) throw error;
    const why = systemCodeOf(error) === 'ECONNREFUSED' ? 'nothing listens there' : messageOf(error);
    throw new Fault(
      'unreachable',
      `the proxy ${proxyText(proxy)} on the way to ${urlText(url)} cannot be reached: ${why}`,
      {
        hint: 'see HTTPS_PROXY and NO_PROXY',
        cause: error,
        data: { url: urlText(url), proxy: proxyText(proxy), reason: systemCodeOf(error) ?? '' },
      },
    );
  }
}

function connected(request: ClientRequest, proxy: URL, target: string): Promise<Duplex> {
  const refuse = ({ statusCode, statusMessage }: IncomingMessage) =>
    new Fault(
      'unreachable',
      `the proxy ${proxyText(proxy)} refuses to connect to ${target}: ${statusCode} ${statusMessage}`,
      {
        hint: 'see HTTPS_PROXY and NO_PROXY',
        data: { proxy: proxyText(proxy), status: statusCode },
      },
    );
  return new Promise((resolve, reject) => {
    request.on('connect', (answer, socket, head) => {
      if (answer.statusCode !== 200) {
        socket.destroy();
        reject(refuse(answer));
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    request.on('response', (answer) => {
      answer.destroy();
      reject(refuse(answer));
    });
    request.on('error', reject);
    request.end();
  });
}

function credentials({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
