/** Opens the link to an orchestrator: TLS 1.3 in which both ends prove their keys, then a WebSocket if the key is trusted. */
import type { KeyObject } from 'node:crypto';
import type { TcpNetConnectOpts } from 'node:net';
import { type ConnectionOptions, connect, createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import { selfSignedEd25519 } from '../../identity/certificate.js';
import { peerEd25519Key } from '../../identity/proof-of-key.js';
import { Fault, isFault, messageOf, systemCodeOf } from '../../kernel/fault.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import { AGENT_PORT } from '../../kernel/ports.js';
import { LINK_ALPN, LINK_LIMITS, LINK_PATH } from '../../wire/limits.js';
import { formatAddress, type OrchestratorAddress } from './orchestrator-address.js';

/** An endpoint of the agent port. */
interface DialPurpose {
  readonly path: string;
  readonly subprotocol?: string;
  /** Maximum bytes of a received frame. */
  readonly maxPayload: number;
}

const LINK: DialPurpose = { path: LINK_PATH, maxPayload: LINK_LIMITS.orchestratorFrame };

export interface DialOptions {
  readonly host: string;
  readonly port: number;
  /** The agent's own key and its certificate, from `dialContext`. */
  readonly context: SecureContext;
  /**
   * Throws when the orchestrator's key is not the expected one; nothing is sent before it returns. The orchestrator waits only
   * a few seconds: a caller that has to ask a user throws, asks, and dials again.
   */
  readonly verifyPeer: (key: PublicKeyHex) => void | Promise<void>;
  /** The pinned key. It was checked for weakness when it was read, which takes longer than the rest of a handshake. */
  readonly pinned?: PublicKeyHex | null;
  /** Endpoint to open [default: the agent link]. */
  readonly purpose?: DialPurpose;
  /** Milliseconds for connection and handshake, and again for the upgrade to a WebSocket. */
  readonly timeoutMs: number;
  /** Aborts the attempt, which then throws `cancelled`. */
  readonly signal?: AbortSignal | undefined;
}

interface Dialled {
  /** Open and paused, so that nothing is lost: attach listeners, then call `resume()`. */
  readonly socket: WebSocket;
  /** The connection below the WebSocket. */
  readonly connection: TLSSocket;
  readonly orchestratorKey: PublicKeyHex;
}

/**
 * Connects. Throws `unreachable` with the address and `data.reason`, `cancelled`, or the error of `verifyPeer`, and leaves no
 * socket open then.
 */
export async function dialOrchestrator(options: DialOptions): Promise<Dialled> {
  const { signal } = options;
  if (signal?.aborted) throw cancelled(options);
  const socket = connect(tlsOptions(options));
  const abort = () => socket.destroy(cancelled(options));
  signal?.addEventListener('abort', abort, { once: true });
  try {
    const orchestratorKey = await handshake(socket, options);
    await options.verifyPeer(orchestratorKey);
    if (socket.destroyed) throw faultOf(socket.errored, options);
    return { socket: await upgrade(socket, options), connection: socket, orchestratorKey };
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

/** Resolves after the TLS handshake with the key that the peer proved. */
function handshake(socket: TLSSocket, options: DialOptions): Promise<PublicKeyHex> {
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(() => socket.destroy(unreachable(options, 'timeout')), options.timeoutMs);
    socket.setNoDelay(true);
    socket.once('secureConnect', () => {
      clearTimeout(deadline);
      const key =
        socket.alpnProtocol === LINK_ALPN ? peerEd25519Key(socket, (shown) => shown === options.pinned) : null;
      if (key) resolve(key);
      else reject(unreachable(options, 'not_an_orchestrator'));
    });
    // Stays for the life of the socket, so that no error is ever unhandled.
    socket.on('error', (error) => reject(faultOf(error, options)));
    socket.once('close', () => {
      clearTimeout(deadline);
      reject(faultOf(socket.errored, options));
    });
  });
}

/** Returns the TLS context of an agent. Make it once: it takes half of a client's time for a handshake. */
export const dialContext = (privateKey: KeyObject): SecureContext =>
  createSecureContext({
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: selfSignedEd25519(privateKey).certPem,
    minVersion: 'TLSv1.3',
    // No CA is involved: the key is compared before anything is sent. The empty list keeps Node from loading its own CAs.
    ca: [],
  });

function tlsOptions({ host, port, context }: DialOptions) {
  const options: ConnectionOptions & Pick<TcpNetConnectOpts, 'autoSelectFamilyAttemptTimeout'> = {
    host,
    port,
    secureContext: context,
    ALPNProtocols: [LINK_ALPN],
    rejectUnauthorized: false,
    // Node tries the next address after 250 ms, less than a distant or sleeping network needs.
    autoSelectFamilyAttemptTimeout: 2_000,
  };
  return options;
}

function upgrade(socket: TLSSocket, options: DialOptions): Promise<WebSocket> {
  const { path, subprotocol, maxPayload } = options.purpose ?? LINK;
  return new Promise((resolve, reject) => {
    const link = new WebSocket(`ws://orchestrator${path}`, subprotocol === undefined ? [] : [subprotocol], {
      createConnection: () => socket,
      perMessageDeflate: false,
      maxPayload,
      // Masks protect proxies from web pages; inside TLS they only cost time at both ends.
      generateMask: (mask) => void mask.fill(0),
    });
    // The WebSocket's own timeout does not run on a connected socket.
    const deadline = setTimeout(() => socket.destroy(unreachable(options, 'timeout')), options.timeoutMs);
    socket.once('close', () => clearTimeout(deadline));
    link.on('error', (error) => reject(faultOf(socket.errored ?? error, options)));
    link.once('unexpected-response', (_, response) => {
      reject(unreachable(options, 'not_an_orchestrator', `it answered with HTTP status ${response.statusCode}`));
      link.terminate();
    });
    link.once('open', () => {
      clearTimeout(deadline);
      link.pause();
      resolve(link);
    });
  });
}

/** Returns true for the error of a dial to an address at which nothing listens. */
export const isRefusal = (error: unknown): boolean =>
  isFault(error, 'unreachable') && error.data?.reason === ('refused' satisfies Reason);

const faultOf = (error: Error | null, options: DialOptions): Fault =>
  error instanceof Fault ? error : unreachable(options, error ?? 'closed');

const cancelled = (options: DialOptions): Fault =>
  new Fault('cancelled', `the connection to ${formatAddress(options)} was given up`);

/** The reason why an orchestrator could not be reached. */
type Reason = 'refused' | 'timeout' | 'unknown_host' | 'no_route' | 'closed' | 'not_an_orchestrator' | 'tls' | 'other';

const REASONS: Readonly<Record<string, Reason>> = {
  ECONNREFUSED: 'refused',
  ETIMEDOUT: 'timeout',
  ENOTFOUND: 'unknown_host',
  EAI_AGAIN: 'unknown_host',
  EHOSTUNREACH: 'no_route',
  ENETUNREACH: 'no_route',
  EADDRNOTAVAIL: 'no_route',
  ECONNRESET: 'closed',
  EPIPE: 'closed',
  // TLS alerts of other kinds of servers: no common protocol, no common version.
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: 'not_an_orchestrator',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'not_an_orchestrator',
  ERR_SSL_WRONG_VERSION_NUMBER: 'not_an_orchestrator',
};

const SENTENCES: Readonly<Record<Reason, string>> = {
  refused: 'nothing listens there',
  timeout: 'it does not answer',
  unknown_host: 'the host name is not known',
  no_route: 'there is no way to it from here',
  closed: 'it closed the connection',
  not_an_orchestrator: "it is not an orchestrator's agent port",
  tls: 'the TLS handshake failed',
  other: 'the connection failed',
};

const HINTS: Readonly<Partial<Record<Reason, string>>> = {
  refused: `is \`orch serve\` running there, and is this its agent_port (${AGENT_PORT} unless changed)?`,
  timeout: 'a firewall may be dropping packets on the way',
  unknown_host: 'check the spelling, and the name server of this machine',
  not_an_orchestrator: `give the agent_port (${AGENT_PORT} unless changed), not the port of the API`,
};

/**
 * Returns the Fault `unreachable` with the address; `data.reason` is for programs.
 * @param why a reason, or the error that ended the connection
 * @param detail additional text for the message
 */
function unreachable(place: OrchestratorAddress, why: Reason | Error, detail?: string): Fault {
  const reason = why instanceof Error ? reasonOf(why) : why;
  const more =
    detail ?? (why instanceof Error && (reason === 'tls' || reason === 'other') ? messageOf(why) : undefined);
  const sentence = more ? `${SENTENCES[reason]} (${more.trim()})` : SENTENCES[reason];
  const hint = HINTS[reason];
  return new Fault('unreachable', `cannot reach ${formatAddress(place)}: ${sentence}`, {
    data: { reason },
    ...(hint ? { hint } : {}),
    ...(why instanceof Error ? { cause: why } : {}),
  });
}

function reasonOf(error: Error): Reason {
  const code = systemCodeOf(error) ?? '';
  const known = REASONS[code];
  if (known) return known;
  return /^ERR_SSL|^EPROTO|^ERR_TLS/.test(code) ? 'tls' : 'other';
}
