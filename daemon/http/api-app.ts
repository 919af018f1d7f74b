/** The contract as a Fastify application: what holds for every request, and one endpoint for each route. */
import type { IncomingMessage, Server } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { API_BASE } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import type { Clock } from '../../src/kernel/clock.js';
import { Fault, messageOf } from '../../src/kernel/fault.js';
import type { NewId } from '../../src/kernel/ids.js';
import type { Authenticate, Authorize } from './access.js';
import { allowedMethods } from './allowed-methods.js';
import { createListener, type TlsFiles } from './api-listener.js';
import { refuseClient } from './client-error.js';
import { addEndpoint } from './endpoint.js';
import { clientAddress } from './exchange.js';
import { faultOfError } from './fault-of-error.js';
import type { HttpLimits } from './http-limits.js';
import { type IdempotencyKeys, IdempotentRequests } from './idempotency.js';
import type { InFlight } from './in-flight.js';
import { renderFault } from './rendered.js';
import { passGate } from './request-gate.js';
import { logRequest } from './request-log.js';
import type { AnyHandler, RunOptions } from './run-handler.js';
import { STANDARD_HEADERS } from './standard-headers.js';

export interface ApiAppOptions extends RunOptions {
  readonly endpoints: readonly { readonly route: RouteSpec; readonly handler: AnyHandler }[];
  readonly authenticate: Authenticate;
  readonly authorize: Authorize;
  readonly idempotency: IdempotencyKeys;
  readonly clock: Clock;
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
  const { clock, endpoints, idempotency, inFlight, limits, logger, tls, trustProxyTls } = options;
  const routes = endpoints.map(({ route }) => route);
  const begin = beginner(options);
  const fail = (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const fault = faultOfError(error);
    const stack = error instanceof Error ? error.stack : undefined;
    if (fault.code === 'internal')
      logger.error('a request failed', { request_id: request.id, reason: messageOf(error), stack });
    const { status, headers, payload } = renderFault(fault, request.id);
    reply.code(status).headers(headers).send(payload);
  };
  const app: FastifyInstance = Fastify({
    serverFactory: (handle) => createListener(tls, limits, handle),
    genReqId: () => options.newRequestId(),
    requestIdHeader: false,
    bodyLimit: limits.bodyBytes,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    routerOptions: { maxParamLength: limits.urlBytes, querystringParser: () => ({}) },
    // Hooks have not run for these.
    frameworkErrors: (error, request, reply) => {
      begin(request, reply);
      fail(error, request, reply);
    },
    clientErrorHandler: (error, socket) =>
      refuseClient(error, socket, { requestId: options.newRequestId(), answering: inFlight.isAnswering(socket) }),
  });
  app.decorateRequest('exchange');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async (request, reply) => {
    begin(request, reply);
    if (options.isClosing()) {
      reply.header('connection', 'close');
      throw new Fault('shutting_down', 'the orchestrator is stopping', {
        hint: 'try again soon',
        data: { retry_after: 5 },
      });
    }
    passGate(request.raw, { urlBytes: limits.urlBytes, isTls: tls !== null || trustProxyTls });
    if (request.is404) throw notFound(routes, request.raw);
  });
  app.addHook('onResponse', async (request, reply) => logRequest(request, reply, { logger, clock }));
  app.setErrorHandler(fail);
  const idempotent = new IdempotentRequests({ keys: idempotency, clock, logger });
  for (const { route, handler } of endpoints) addEndpoint(app, route, handler, { ...options, idempotent });
  return {
    server: app.server,
    ready: async () => {
      await app.ready();
    },
    close: () => app.close(),
  };
}

/** Makes the function that takes note of a new request and prepares the headers of its answer. */
function beginner({ clock, inFlight, trustProxyTls }: ApiAppOptions) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const abort = new AbortController();
    const { headers } = request.raw;
    request.exchange = {
      requestId: request.id,
      address: clientAddress(request.raw, trustProxyTls),
      contentType: headers['content-type'],
      startedAt: clock.monotonic(),
      abort,
      keepsRunning: false,
      session: null,
      token: null,
    };
    // Fastify must not judge it: an empty body is welcome whatever its type.
    delete headers['content-type'];
    reply.headers({ ...STANDARD_HEADERS, 'x-request-id': request.id });
    inFlight.add(reply.raw, abort);
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished && !request.exchange.keepsRunning)
        abort.abort(new Fault('cancelled', 'the client went away'));
    });
  };
}

function notFound(routes: readonly RouteSpec[], { method = '', url = '' }: IncomingMessage): Fault {
  const path = url.split('?')[0] ?? '';
  const allow = allowedMethods(routes, path);
  if (allow.length === 0) {
    return new Fault('not_found', `there is nothing at ${path}`, {
      hint: `GET ${API_BASE}/openapi.json tells what there is`,
    });
  }
  const hint = `use ${allow.join(' or ')}`;
  return new Fault('method_not_allowed', `${method} does not work on ${path}`, { hint, data: { allow } });
}
