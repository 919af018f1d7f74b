/** One log line a request: reads that went well are for debugging, the rest is worth knowing. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../src/kernel/clock.js';
import type { Logger } from '../../src/kernel/logger.js';

export function logRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  { logger, clock }: { readonly logger: Logger; readonly clock: Clock },
): void {
  const { requestId, startedAt, session, address } = request.exchange;
  const status = reply.raw.statusCode;
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  logger[isRead && status < 500 ? 'debug' : 'info']('request', {
    request_id: requestId,
    method: request.method,
    // Without the query, which may hold names that people search for.
    path: request.raw.url?.split('?')[0]?.slice(0, 512),
    status,
    duration_ms: Math.round(clock.monotonic() - startedAt),
    operator_id: session?.operator.operator_id ?? null,
    address,
  });
}
