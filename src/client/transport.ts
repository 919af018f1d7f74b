/**
 * HTTP requests over connections whose server is verified before anything is sent. It uses Node's HTTP client, which loads
 * ten times faster than an HTTP library; most of a command's time is start-up.
 */
import { setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import {
  type Agent,
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { Fault, messageOf } from '../kernel/fault.js';
import type { Connection } from './connection.js';
import { hostOf, isLoopback, urlText } from './server-url.js';
import { openTrustedSocket, type TrustedSocketOptions } from './trusted-socket.js';
import { unreachable } from './unreachable.js';

export interface TransportRequest {
  readonly method: string;
  /** Path from the root of the server, with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
}

export interface TransportAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Ending the iteration early closes the connection. Throws Fault `unreachable` when the connection breaks. */
  readonly body: AsyncIterable<Uint8Array>;
  /** SHA-256 of the SPKI of this connection's certificate; null over plain HTTP. */
  readonly serverSpki: Uint8Array | null;
}

export interface Transport {
  /** Pool of verified connections to the server, for upgrades to a WebSocket. */
  readonly connections: Agent;
  /**
   * Sends a request. Throws Fault `unreachable` without an answer (`data.broke` is true for a lost connection),
   * `tls_unknown` or `tls_mismatch` before anything is sent, and the signal's reason.
   */
  request(request: TransportRequest): Promise<TransportAnswer>;
  close(): void;
}

/** Maximum bytes of an answer, and characters of a line of a stream, that are kept in memory. */
const MAX_TEXT = 256 * 1024 * 1024;

/** Reads the whole body as text. Throws Fault `unreachable` for a body that is too large to keep. */
export async function textOf({ body }: TransportAnswer): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    refuseTooLarge(length);
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

/** Throws Fault `unreachable` for a text that is too large to keep: the sender is no orchestrator, or a hostile one. */
export function refuseTooLarge(length: number): void {
  if (length <= MAX_TEXT) return;
  throw new Fault('unreachable', `the server answers with more than ${MAX_TEXT / 1024 / 1024} MiB`, {
    hint: 'check the address, and any proxy in between',
  });
}

/** Time limits for the connection and for the TLS handshake after it. */
const CONNECT_TIMEOUT_MS = 10_000;
const HANDSHAKE_TIMEOUT_MS = 30_000;
/** Interval of TCP keep-alive probes, so that a dead server does not block a command for ever. */
const KEEP_ALIVE_MS = 15_000;
/** Idle time after which the client closes a connection, before the server does: a request in flight would fail then. */
const IDLE_MS = 10_000;

/**
 * Creates a transport; the first request connects. Throws `tls_required` for plain HTTP to another machine and
 * `invalid_config` for an unreadable CA.
 */
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
      // Without a connection, Node reports an abort only once there is one.
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

interface TrustedAgentOptions extends Omit<TrustedSocketOptions, 'signal' | 'onReached'> {
  /** Milliseconds until the server accepts the connection, through any proxy. */
  readonly connectTimeout: number;
  /** Milliseconds for the TLS handshake after that. A busy server accepts at once but needs time for the handshake. */
  readonly handshakeTimeout: number;
  readonly keepAliveMsecs: number;
  /** Idle milliseconds after which a connection is closed. */
  readonly idleMsecs: number;
  /** Ends attempts to connect. */
  readonly closing: AbortSignal;
}

/** A pool of verified connections. It has no TLS session cache, so each connection makes a full handshake. */
export class TrustedAgent extends HttpsAgent {
  private readonly trusted: TrustedAgentOptions;
  private readonly spkis = new WeakMap<object, Buffer>();

  constructor(options: TrustedAgentOptions) {
    super({ keepAlive: true, keepAliveMsecs: options.keepAliveMsecs, maxCachedSessions: 0 });
    this.trusted = options;
  }

  /** Returns the SHA-256 of the SPKI of a connection's certificate. */
  spkiOf(socket: object): Buffer | null {
    return this.spkis.get(socket) ?? null;
  }

  override createConnection(_: unknown, callback: (error: Error | null, stream: Duplex) => void): undefined {
    this.open().then(
      (socket) => callback(null, socket),
      // The callback ignores the stream beside an error, but its type requires one.
      (error) => callback(error, new Duplex()),
    );
  }

  /** Sets the idle timeout; the pool closes a free connection that times out. */
  override keepSocketAlive(socket: Duplex): boolean {
    super.keepSocketAlive(socket);
    if (socket instanceof Socket) socket.setTimeout(this.trusted.idleMsecs);
    return true;
  }

  override reuseSocket(socket: Duplex, request: ClientRequest): void {
    super.reuseSocket(socket, request);
    if (socket instanceof Socket) socket.setTimeout(0);
  }

  private async open(): Promise<Duplex> {
    const { closing, connectTimeout, handshakeTimeout, keepAliveMsecs } = this.trusted;
    // Not AbortSignal.any with AbortSignal.timeout: in Node 20 such a signal can be collected before it fires.
    const attempt = new AbortController();
    const giveUp = (code: string) => attempt.abort(Object.assign(new Error('it does not answer'), { code }));
    let timer = setTimeout(giveUp, connectTimeout, 'ETIMEDOUT');
    const onReached = () => {
      clearTimeout(timer);
      timer = setTimeout(giveUp, handshakeTimeout, 'ERR_TLS_HANDSHAKE_TIMEOUT');
    };
    const close = () => attempt.abort(closing.reason);
    closing.addEventListener('abort', close, { once: true });
    if (closing.aborted) close();
    try {
      const { socket, spki } = await openTrustedSocket({ ...this.trusted, signal: attempt.signal, onReached });
      // The pool drops an idle connection with an error.
      socket.on('error', () => {});
      socket.setKeepAlive(true, keepAliveMsecs);
      this.spkis.set(socket, spki);
      return socket;
    } finally {
      clearTimeout(timer);
      closing.removeEventListener('abort', close);
    }
  }
}
