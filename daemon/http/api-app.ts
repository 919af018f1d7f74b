/** The contract as a Fastify application: what holds for every request, and one endpoint for each route. */
import type { Server } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Logger } from '../../src/kernel/logger.js';
import type { Core } from '../core/core.js';
import type { Authenticate, Authorize } from './access.js';
import { createListener, type HttpLimits, type TlsFiles } from './api-listener.js';
import { refuseClient } from './client-error.js';
import { addEndpoint } from './endpoint.js';
import { beginRequest, type InFlight, logRequest } from './exchange.js';
import { type IdempotencyKeys, IdempotentRequests } from './idempotency.js';
import { faultOfError, renderFault } from './rendered.js';
import { gateRefusal, noSuchRoute } from './request-gate.js';
import type { AnyHandler, RunOptions } from './run-handler.js';

/** A request as it was answered. */
export interface AnsweredRequest {
  /** The route's id, or `none` for what is no route. */
  readonly route: string;
  readonly method: string;
  readonly status: number;
  readonly seconds: number;
}

export type OnAnswered = (request: AnsweredRequest) => void;

export interface ApiAppOptions extends RunOptions, Pick<Core, 'clock'> {
  readonly endpoints: readonly { readonly route: RouteSpec; readonly handler: AnyHandler }[];
  readonly authenticate: Authenticate;
  readonly authorize: Authorize;
  /** True for the token that may only scrape. */
  readonly isScraper: (token: string) => boolean;
  readonly onAnswered: OnAnswered;
  readonly idempotency: IdempotencyKeys;
  readonly newRequestId: NewId;
  readonly tls: TlsFiles | null;
  readonly limits: HttpLimits;
  readonly trustProxyTls: boolean;
  readonly inFlight: InFlight;
  /** True from the moment that no new request is taken. */
  isClosing(): boolean;
}

export interface ApiApp {
  /** Does not listen yet. */
  readonly server: Server;
  ready(): Promise<void>;
  close(): Promise<void>;
}

export function createApiApp(options: ApiAppOptions): ApiApp {
  const { clock, endpoints, idempotency, logger } = options;
  const app = bareApp(options);
  const routes = endpoints.map(({ route }) => route);
  app.decorateRequest('exchange');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', (request, reply, done) => {
    beginRequest(request, reply, options);
    done(refusalOf(request, reply, { ...options, routes }));
  });
  app.addHook('onResponse', (request, reply, done) => {
    logRequest(request, reply, { logger, clock });
    options.onAnswered({
      route: request.routeOptions.config.routeId ?? 'none',
      method: request.method,
      status: reply.raw.statusCode,
      seconds: (clock.monotonic() - request.exchange.startedAt) / 1000,
    });
    done();
  });
  app.setErrorHandler((error, request, reply) => answerWithFault(error, request, reply, logger));
  const idempotent = new IdempotentRequests({ keys: idempotency, clock, logger });
  for (const { route, handler } of endpoints) addEndpoint(app, route, handler, { ...options, idempotent });
  return { server: app.server, ready: async () => void (await app.ready()), close: () => app.close() };
}

/** Fastify with nothing of its own switched on that the contract decides. */
function bareApp(options: ApiAppOptions): FastifyInstance {
  const { inFlight, limits, logger, newRequestId, tls } = options;
  return Fastify({
    serverFactory: (handle) => createListener(tls, limits, handle),
    genReqId: () => newRequestId(),
    requestIdHeader: false,
    bodyLimit: limits.bodyBytes,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    routerOptions: { maxParamLength: limits.urlBytes, querystringParser: () => ({}) },
    // Hooks have not run for these.
    frameworkErrors: (error, request, reply) => {
      beginRequest(request, reply, options);
      answerWithFault(error, request, reply, logger);
    },
    clientErrorHandler: (error, socket) =>
      refuseClient(error, socket, { requestId: newRequestId(), answering: inFlight.isAnswering(socket) }),
  });
}

interface RefusalOptions extends ApiAppOptions {
  readonly routes: readonly RouteSpec[];
}

/** Why a request is not even looked at, if so. */
function refusalOf(request: FastifyRequest, reply: FastifyReply, options: RefusalOptions): Fault | undefined {
  const { limits, routes, tls, trustProxyTls } = options;
  const { method = '', url = '' } = request.raw;
  if (options.isClosing()) {
    reply.header('connection', 'close');
    const data = { retry_after: 5 };
    return new Fault('shutting_down', 'the orchestrator is stopping', { hint: 'try again soon', data });
  }
  const refusal = gateRefusal(request.raw, { urlBytes: limits.urlBytes, isTls: tls !== null || trustProxyTls });
  return refusal ?? (request.is404 ? noSuchRoute(routes, method, url) : undefined);
}

/** For whatever is thrown outside of handlers. */
function answerWithFault(error: unknown, request: FastifyRequest, reply: FastifyReply, logger: Logger): void {
  const fault = faultOfError(error);
  if (fault.code === 'internal') {
    const stack = error instanceof Error ? error.stack : undefined;
    logger.error('a request failed', { request_id: request.id, reason: messageOf(error), stack });
  }
  const { status, headers, payload } = renderFault(fault, request.id);
  reply.code(status).headers(headers).send(payload);
}
