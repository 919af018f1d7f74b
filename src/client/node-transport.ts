/**
 * The transport over Node's own HTTP client. It takes a tenth of undici's time to load, and a command of `orch` is mostly
 * start-up; what undici would add (proxies, a check of each connection) is a few lines here.
 */
import { setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Fault, messageOf } from '../kernel/fault.js';
import type { Connection } from './connection.js';
import { hostOf, isLoopback, urlText } from './server-url.js';
import type { Transport, TransportAnswer, TransportRequest } from './transport.js';
import { TrustedAgent } from './trusted-agent.js';
import { unreachable } from './unreachable.js';

/** Milliseconds until the server has accepted the connection, and of the TLS handshake after that. */
const CONNECT_TIMEOUT_MS = 10_000;
const HANDSHAKE_TIMEOUT_MS = 30_000;
/** How often a silent connection is probed, in milliseconds, so that a dead server does not hold a command for ever. */
const KEEP_ALIVE_MS = 15_000;
/** An unused connection is closed before the server does it: a request that crosses that on its way would fail. */
const IDLE_MS = 10_000;

/** Opens nothing yet. Throws `tls_required` for plain HTTP to another machine, `invalid_config` for an unreadable CA. */
export function createTransport(connection: Connection): Transport {
  const { url } = connection;
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  const agent = url.protocol === 'https:' ? secureAgent(connection, closing.signal) : plainAgent(connection);
  const spkiOf = ({ socket }: IncomingMessage) => (agent instanceof TrustedAgent ? agent.spkiOf(socket) : null);
  return {
    connections: agent,
    request: async (request) => {
      request.signal?.throwIfAborted();
      try {
        const response = await send(request);
        return answerOf(response, { url, signal: request.signal, serverSpki: spkiOf(response) });
      } catch (error) {
        request.signal?.throwIfAborted();
        throw unreachable(error, url);
      }
    },
    close: () => {
      closing.abort(new Error('the client was closed'));
      agent.destroy();
    },
  };

  function send({ method, path, headers, body, signal }: TransportRequest): Promise<IncomingMessage> {
    const start = agent instanceof TrustedAgent ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const request = start({
        agent,
        method,
        host: hostOf(url),
        port: url.port,
        path: url.pathname.replace(/\/$/, '') + path,
        headers: body === undefined ? headers : { ...headers, 'content-length': String(Buffer.byteLength(body)) },
        ...(signal ? { signal } : {}),
      });
      // While there is no connection yet, Node tells an abort only when there is one.
      const abort = () => reject(signal?.reason);
      signal?.addEventListener('abort', abort, { once: true });
      request.once('close', () => signal?.removeEventListener('abort', abort));
      request.once('response', resolve);
      request.on('error', reject);
      request.end(body);
    });
  }
}

function secureAgent({ url, pin, ca, profile, env }: Connection, closing: AbortSignal): TrustedAgent {
  return new TrustedAgent({
    url,
    pin,
    ca: ca === null ? null : readCa(ca),
    caFile: ca,
    profile,
    env,
    closing,
    connectTimeout: CONNECT_TIMEOUT_MS,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
    keepAliveMsecs: KEEP_ALIVE_MS,
    idleMsecs: IDLE_MS,
  });
}

function plainAgent({ url, allowPlainHttp }: Connection): HttpAgent {
  if (isLoopback(hostOf(url)) || allowPlainHttp)
    return new HttpAgent({ keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS });
  throw new Fault('tls_required', `${urlText(url)} is not encrypted, and it is not this machine`, {
    hint: 'use https; to send tokens in the clear all the same, set allow_plain_http in the profile or ORCH_ALLOW_PLAIN_HTTP=1',
    data: { url: urlText(url) },
  });
}

function readCa(path: string): string {
  try {
    const text = readFileSync(path, 'utf8');
    if (/-----BEGIN (TRUSTED )?CERTIFICATE-----/.test(text)) return text;
  } catch (cause) {
    throw new Fault('invalid_config', `the CA file ${path} cannot be read: ${messageOf(cause)}`, { cause });
  }
  throw new Fault('invalid_config', `the CA file ${path} holds no certificate in PEM form`);
}

interface AnswerContext {
  readonly url: URL;
  readonly signal: AbortSignal | undefined;
  readonly serverSpki: Uint8Array | null;
}

function answerOf(response: IncomingMessage, { url, signal, serverSpki }: AnswerContext): TransportAnswer {
  const headers = Object.entries(response.headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : (value ?? ''),
  ]);
  return { status: response.statusCode ?? 0, headers: Object.fromEntries(headers), body: read(), serverSpki };

  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of response) yield chunk;
    } catch (error) {
      signal?.throwIfAborted();
      throw unreachable(error, url);
    }
  }
}
