/** The HTTP server of the contract: the steps common to all requests, and one endpoint per route. */
import type { Server } from 'node:http';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Core } from '../core/core.js';
import type { Authenticate, Authorize, AuthorizeOn } from './access.js';
import { createListener, type TlsFiles } from './api-listener.js';
import { refuseClient } from './client-error.js';
import { createEndpoint, type Endpoint } from './endpoint.js';
import { beginExchange, type Exchange, type InFlight, logRequest } from './exchange.js';
import type { HttpLimits } from './http-limits.js';
import { type IdempotencyKeys, IdempotentRequests } from './idempotency.js';
import { faultOfError, renderFault, sendRendered } from './rendered.js';
import { gateRefusal } from './request-gate.js';
import { Router } from './router.js';
import type { AnyHandler, RunOptions } from './run-handler.js';
import { isGone } from './streams.js';

/** An answered request, for metrics. */
interface AnsweredRequest {
  /** ID of the route, or `none` when no route matched. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
}

export type OnAnswered = (request: AnsweredRequest) => void;

interface ApiAppOptions extends RunOptions, Pick<Core, 'clock'> {
  readonly endpoints: readonly { readonly route: RouteSpec; readonly handler: AnyHandler }[];
  readonly authenticate: Authenticate;
  readonly authorize: Authorize;
  readonly authorizeOn: AuthorizeOn;
  /** Returns true for the token that may only scrape metrics. */
  readonly isScraper: (token: string) => boolean;
  readonly onAnswered: OnAnswered;
  readonly idempotency: IdempotencyKeys;
  readonly newRequestId: NewId;
  readonly tls: TlsFiles | null;
  readonly limits: HttpLimits;
  readonly trustProxyTls: boolean;
  readonly inFlight: InFlight;
  /** Returns true once new requests are refused. */
  isClosing(): boolean;
}

/** Creates the server, which does not listen yet. */
export function createApiApp(options: ApiAppOptions): Server {
  const { clock, endpoints, idempotency, inFlight, limits, logger, newRequestId, tls } = options;
  const idempotent = new IdempotentRequests({ keys: idempotency, clock, logger });
  const router = new Router<Endpoint>();
  for (const { route, handler } of endpoints) {
    router.add(route, createEndpoint(route, handler, { ...options, idempotent }));
  }
  const server = createListener(tls, limits, (request, response) => {
    const exchange = beginExchange(request, response, options);
    response.once('finish', () => answered(exchange, options));
    answer(exchange, router, options).catch((error: unknown) => answerWithFault(error, exchange, logger));
  });
  server.on('clientError', (error, socket) =>
    refuseClient(error, socket, { requestId: newRequestId(), answering: inFlight.isAnswering(socket) }),
  );
  return server;
}

/** Answers a request through its endpoint. Throws the faults that precede a handler. */
async function answer(exchange: Exchange, router: Router<Endpoint>, options: ApiAppOptions): Promise<void> {
  const { limits, tls, trustProxyTls } = options;
  const { request, response } = exchange;
  if (options.isClosing()) {
    response.setHeader('connection', 'close');
    throw new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon' });
  }
  const refusal = gateRefusal(request, { urlBytes: limits.urlBytes, isTls: tls !== null || trustProxyTls });
  if (refusal !== undefined) throw refusal;
  const { endpoint, params } = router.find(request.method ?? '', request.url ?? '');
  exchange.routeId = endpoint.route.id;
  await endpoint.serve(exchange, params);
}

/** Answers with the fault thrown before or outside a handler. */
function answerWithFault(error: unknown, exchange: Exchange, logger: Logger): void {
  const { response, requestId } = exchange;
  const fault = faultOfError(error);
  if (fault.code === 'internal') {
    const stack = error instanceof Error ? error.stack : undefined;
    logger.error('a request failed', { request_id: requestId, reason: messageOf(error), stack });
  }
  if (isGone(response)) return;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  // Closes the connection instead of reading the rest of an oversized body.
  if (fault.code === 'body_too_large') response.setHeader('connection', 'close');
  sendRendered(exchange, renderFault(fault, requestId));
}

function answered(exchange: Exchange, { clock, logger, onAnswered }: ApiAppOptions): void {
  logRequest(exchange, { clock, logger });
  onAnswered({
    route: exchange.routeId,
    method: exchange.request.method ?? '',
    status: exchange.response.statusCode,
    seconds: (clock.monotonic() - exchange.startedAt) / 1000,
  });
}
