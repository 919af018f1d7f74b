/** Downloads over HTTP from the agent port, whose peer has to prove the orchestrator's key before anything is sent. */
import { type IncomingMessage, request } from 'node:http';
import { connect, type SecureContext, type TLSSocket } from 'node:tls';
import { requirePinned } from '../../identity/pin.js';
import { peerEd25519Key } from '../../identity/proof-of-key.js';
import { Fault } from '../../kernel/fault.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import { formatAddress, type OrchestratorAddress } from './orchestrator-address.js';

/** The orchestrator that serves downloads, and its key. */
export interface DownloadSource extends OrchestratorAddress {
  readonly key: PublicKeyHex;
}

export interface DownloadOptions {
  readonly source: DownloadSource;
  /** The agent's own key and certificate, from `dialContext`. */
  readonly context: SecureContext;
  readonly signal: AbortSignal;
  /** Position of the first byte [default: 0]. */
  readonly from?: number;
}

/** Milliseconds without a byte after which a download has failed. */
const SILENCE_MS = 60_000;

/**
 * Requests a path and passes the answer on, whose connection ends when `take` has settled. Rejects with `pin_mismatch` when the
 * peer has another key, and with the error of the connection.
 */
export async function download<T>(
  path: string,
  { source, context, signal, from = 0 }: DownloadOptions,
  take: (answer: IncomingMessage) => Promise<T>,
): Promise<T> {
  const socket = await dial(source, context, signal);
  try {
    return await take(await get(socket, path, { from, signal }));
  } finally {
    socket.destroy();
  }
}

/** Connects to the agent port. Rejects with `pin_mismatch` before anything is sent when the peer has another key. */
function dial(source: DownloadSource, context: SecureContext, signal: AbortSignal): Promise<TLSSocket> {
  const { host, port, key } = source;
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port,
      secureContext: context,
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: false,
    });
    const abort = () => socket.destroy(new Error('the agent stops'));
    signal.addEventListener('abort', abort, { once: true });
    socket.once('close', () => signal.removeEventListener('abort', abort));
    socket.setTimeout(SILENCE_MS, () => socket.destroy(new Error(`${formatAddress(source)} is silent`)));
    socket.on('error', reject);
    socket.once('secureConnect', () => {
      try {
        const shown = peerEd25519Key(socket, (known) => known === key);
        if (shown === null) {
          throw new Fault('pin_mismatch', `${formatAddress(source)} is not an orchestrator's agent port`);
        }
        requirePinned(key, shown, formatAddress(source));
        resolve(socket);
      } catch (error) {
        socket.destroy();
        reject(error);
      }
    });
  });
}

interface Asking {
  readonly from: number;
  readonly signal: AbortSignal;
}

function get(socket: TLSSocket, path: string, { from, signal }: Asking): Promise<IncomingMessage> {
  const headers = { Host: 'orchestrator', ...(from > 0 && { Range: `bytes=${from}-` }) };
  return new Promise((resolve, reject) => {
    const asked = request({ createConnection: () => socket, path, headers, signal });
    asked.once('response', resolve);
    asked.once('error', reject);
    asked.end();
  });
}

/** Resolves after the milliseconds, or as soon as the signal aborts. */
export function pauseUnless(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done, { once: true });
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
  });
}
