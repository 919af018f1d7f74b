/** Opens a way through a proxy with CONNECT. The proxy learns host and port and nothing else. */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { Fault, isFault, messageOf, systemCodeOf } from '../kernel/fault.js';
import { proxyText } from './proxy.js';
import { urlText } from './server-url.js';

export interface TunnelOptions {
  readonly proxy: URL;
  readonly url: URL;
  readonly signal: AbortSignal;
}

/** A connection to the server's port. Throws Fault `unreachable` naming the proxy. */
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
