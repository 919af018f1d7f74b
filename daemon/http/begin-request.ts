/** Takes note of a new request and prepares the headers of its answer. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import { Cancellation } from './cancellation.js';
import { baseUrlOf, clientAddress, isPrivate } from './exchange.js';
import type { InFlight } from './in-flight.js';
import { STANDARD_HEADERS } from './standard-headers.js';

export interface BeginOptions {
  readonly clock: Clock;
  readonly inFlight: InFlight;
  readonly trustProxyTls: boolean;
}

export function beginRequest(request: FastifyRequest, reply: FastifyReply, options: BeginOptions): void {
  const { clock, inFlight, trustProxyTls } = options;
  const { raw } = request;
  const cancellation = new Cancellation();
  const exchange = {
    requestId: request.id,
    address: clientAddress(raw, trustProxyTls),
    contentType: raw.headers['content-type'],
    isPrivate: isPrivate(raw, trustProxyTls),
    baseUrl: baseUrlOf(raw, trustProxyTls),
    startedAt: clock.monotonic(),
    cancellation,
    keepsRunning: false,
    session: null,
    token: null,
  };
  request.exchange = exchange;
  // Fastify must not judge it: an empty body is welcome whatever its type.
  delete raw.headers['content-type'];
  for (const [name, value] of STANDARD_HEADERS) reply.header(name, value);
  reply.header('x-request-id', request.id);
  inFlight.add(reply.raw, cancellation);
  reply.raw.once('close', () => {
    inFlight.remove(reply.raw);
    if (reply.raw.writableFinished || exchange.keepsRunning) return;
    cancellation.cancel(new Fault('cancelled', 'the client went away'));
  });
}
