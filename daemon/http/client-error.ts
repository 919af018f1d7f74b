/** Answers malformed requests that never reach a handler: invalid HTTP, too many headers, timeouts. */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { Fault, systemCodeOf } from '../../src/kernel/fault.js';
import { STANDARD_HEADERS } from './exchange.js';
import { renderFault } from './rendered.js';

/** Milliseconds in which the client must read the answer before its connection is closed. */
const LINGER_MS = 1_000;

/**
 * Sends a problem document on the bare socket and closes it.
 * @param answering true when an answer has begun on the socket, which more bytes would corrupt
 */
export function refuseClient(
  error: Error,
  socket: Duplex,
  { requestId, answering }: { requestId: string; answering: boolean },
): void {
  if (socket.destroyed || systemCodeOf(error) === 'ECONNRESET' || !socket.writable || answering) {
    socket.destroy();
    return;
  }
  sendFault(faultOf(systemCodeOf(error)), socket, requestId);
}

/** Sends a problem document on a bare socket that carries no answer yet, and closes it. */
export function sendFault(fault: Fault, socket: Duplex, requestId: string): void {
  const { status, headers, payload } = renderFault(fault, requestId);
  const body = payload ?? '';
  const lines = Object.entries({
    ...Object.fromEntries(STANDARD_HEADERS),
    ...headers,
    'x-request-id': requestId,
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function faultOf(code: string | undefined): Fault {
  if (code === 'HPE_HEADER_OVERFLOW') return new Fault('headers_too_large', 'the request headers are too large');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new Fault('request_timeout', 'the request did not arrive in time');
  return new Fault('bad_request', 'this is not HTTP');
}
