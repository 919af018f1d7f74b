/** Upgrade requests: accepted for the streams of terminals and forwards, ignored everywhere else. */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { TLSSocket } from 'node:tls';
import { API_BASE } from '../../src/contract/contract.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import { sendFault } from './client-error.js';
import { clientAddress, isPrivate } from './exchange.js';
import type { HttpLimits } from './http-limits.js';
import { faultOfError } from './rendered.js';
import { gateRefusal } from './request-gate.js';

/** The kinds of streams. */
type StreamNoun = 'terminal' | 'forward';

/** An upgrade request on the path of a session's stream. */
export interface StreamRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly noun: StreamNoun;
  /** Session ID in the path. */
  readonly sessionId: string;
  /** Ticket in the query; empty without one. */
  readonly ticket: string;
  readonly address: string | null;
}

/** Serves the streams. */
export interface StreamDoor {
  /** Answers the upgrade. Throws a Fault as long as nothing was answered. */
  open(given: StreamRequest): void;
  /** Tells all clients that the orchestrator is stopping. */
  leave(): void;
  /** Number of open streams. */
  readonly size: number;
}

/** Serves each kind of streams by a door of its own. */
export const doorByNoun = (doors: Readonly<Record<StreamNoun, StreamDoor>>): StreamDoor => ({
  open: (given) => doors[given.noun].open(given),
  leave: () => {
    for (const door of Object.values(doors)) door.leave();
  },
  get size() {
    return Object.values(doors).reduce((sum, { size }) => sum + size, 0);
  },
});

interface UpgradeOptions extends Pick<Core, 'logger'> {
  readonly door: StreamDoor;
  readonly limits: HttpLimits;
  readonly isTls: boolean;
  readonly trustProxyTls: boolean;
  readonly newRequestId: NewId;
  isClosing(): boolean;
}

const STREAM = new RegExp(`^${API_BASE}/(?:terminal/session|(forward))/([0-9A-Z]{1,64})/stream$`);

/** Returns true when a request for this URL may ask for an upgrade. */
export const isStreamUrl = (url: string | undefined): boolean => STREAM.test((url ?? '').split('?')[0] ?? '');

/**
 * Handles upgrade requests. With a listener set, Node emits every request with an `Upgrade` header here, unless it
 * supports `shouldUpgradeCallback`.
 */
export function acceptUpgrades(server: Server, options: UpgradeOptions): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy());
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const [, forward, sessionId] = STREAM.exec(path) ?? [];
    if (sessionId === undefined) return serveWithout(server, request, socket, head);
    try {
      const refusal = refusalOf(request, options);
      if (refusal !== undefined) throw refusal;
      const ticket = new URLSearchParams(query).get('ticket') ?? '';
      const address = clientAddress(request, options.trustProxyTls);
      options.door.open({
        request,
        socket,
        head,
        noun: forward === undefined ? 'terminal' : 'forward',
        sessionId,
        ticket,
        address,
      });
    } catch (error) {
      refuse(socket, error, options);
    }
  });
}

/**
 * Serves a request as if it had not asked for an upgrade, because an unsupported protocol may be ignored (RFC 9110).
 * Node has detached the connection from its parser and read none of the body, so the request is fed back and parsed
 * again.
 */
function serveWithout(server: Server, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const lines = [`${request.method} ${request.url} HTTP/${request.httpVersion}`, 'connection: close'];
  for (let at = 0; at + 1 < request.rawHeaders.length; at += 2) {
    const [name = '', value = ''] = request.rawHeaders.slice(at, at + 2);
    if (!ASKING.has(name.toLowerCase())) lines.push(`${name}: ${value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit(socket instanceof TLSSocket ? 'secureConnection' : 'connection', socket);
}

const ASKING: ReadonlySet<string> = new Set(['connection', 'upgrade']);

function refusalOf(request: IncomingMessage, options: UpgradeOptions): Fault | undefined {
  const { isTls, limits, trustProxyTls } = options;
  if (options.isClosing()) {
    return new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon' });
  }
  if (!isPrivate(request, trustProxyTls)) {
    return new Fault('tls_required', 'terminals and forwards are only served over TLS', { hint: 'use wss' });
  }
  return gateRefusal(request, { urlBytes: limits.urlBytes, isTls: isTls || trustProxyTls });
}

function refuse(socket: Duplex, error: unknown, { logger, newRequestId }: UpgradeOptions): void {
  const fault = faultOfError(error);
  if (fault.code === 'internal') logger.error('an upgrade failed', { reason: messageOf(error) });
  sendFault(fault, socket, newRequestId());
}
