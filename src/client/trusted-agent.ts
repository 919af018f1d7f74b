/** A pool of connections each of which was checked when it was made. There is no session cache, so each is a full handshake. */
import type { ClientRequest } from 'node:http';
import { Agent } from 'node:https';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { openTrustedSocket, type TrustedSocketOptions } from './trusted-socket.js';

export interface TrustedAgentOptions extends Omit<TrustedSocketOptions, 'signal' | 'onReached'> {
  /** Milliseconds until the server, through any proxy, has accepted the connection. */
  readonly connectTimeout: number;
  /** Milliseconds of the TLS handshake after that: a busy server accepts at once and needs time for the handshake. */
  readonly handshakeTimeout: number;
  readonly keepAliveMsecs: number;
  /** A connection that is unused for so long is closed. */
  readonly idleMsecs: number;
  /** Ends attempts to connect. */
  readonly closing: AbortSignal;
}

export class TrustedAgent extends Agent {
  private readonly trusted: TrustedAgentOptions;
  private readonly spkis = new WeakMap<object, Buffer>();

  constructor(options: TrustedAgentOptions) {
    super({ keepAlive: true, keepAliveMsecs: options.keepAliveMsecs, maxCachedSessions: 0 });
    this.trusted = options;
  }

  /** SHA-256 of the SPKI of a connection's certificate. */
  spkiOf(socket: object): Buffer | null {
    return this.spkis.get(socket) ?? null;
  }

  override createConnection(_: unknown, callback: (error: Error | null, stream: Duplex) => void): undefined {
    this.open().then(
      (socket) => callback(null, socket),
      // The stream is not looked at beside an error, but the type wants one.
      (error) => callback(error, new Duplex()),
    );
  }

  /** A free connection that times out is closed by the pool. */
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
      // An error on an idle connection concerns nobody; the pool drops it.
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
