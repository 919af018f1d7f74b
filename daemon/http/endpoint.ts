/** One route of the contract as a Fastify route: access, input, handler, answer. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { API_BASE } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';
import {
  type Authenticate,
  type Authorize,
  bearerToken,
  guardSession,
  requireSession,
  type Session,
  type SessionGuard,
} from './access.js';
import type { HttpLimits } from './api-listener.js';
import { type IdempotentRequests, idempotencyKeyOf, type Outcome } from './idempotency.js';
import { type Rendered, renderFault } from './rendered.js';
import { type Input, inputReader } from './request-input.js';
import { type AnyHandler, type Outlets, type RunOptions, runner } from './run-handler.js';
import { EventStream, LineStream, wantsLines } from './streams.js';

export interface EndpointOptions extends RunOptions {
  readonly authenticate: Authenticate;
  readonly authorize: Authorize;
  /** True for the token that may only scrape. */
  readonly isScraper: (token: string) => boolean;
  readonly idempotent: IdempotentRequests;
  readonly limits: HttpLimits;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    routeId?: string;
  }
}

/** Adds a route to the server. */
export function addEndpoint(
  app: FastifyInstance,
  route: RouteSpec,
  handler: AnyHandler,
  options: EndpointOptions,
): void {
  const { authenticate, authorize, idempotent, isScraper, limits } = options;
  const readInput = inputReader(route, limits);
  const runHandler = runner(route, handler, options);
  app.route({
    method: route.method === 'GET' ? ['GET', 'HEAD'] : route.method,
    config: { routeId: route.id },
    // Refused by Content-Length before a byte is read, else when the limit is reached.
    bodyLimit: route.access === 'public' ? limits.publicBodyBytes : Math.max(limits.bodyBytes, route.bodyBytes ?? 0),
    url: API_BASE + route.path.replace(/\{(\w+)\}/g, ':$1'),
    onRequest: async ({ exchange, headers }) => {
      if (route.access === 'public') return;
      exchange.token = bearerToken(headers.authorization);
      const scrapes = route.scrape === true && isScraper(exchange.token);
      exchange.session = scrapes ? SCRAPER : requireSession(await authenticate(exchange.token));
      authorize(route.access, exchange.session.operator);
      if (route.tls === true && !exchange.isPrivate) throw tlsRequired();
    },
    handler: async (request, reply) => {
      const input = readInput(request);
      const outlets = outletsOf(request, reply);
      const run = () => runHandler(request.exchange, input, outlets);
      const isLong = outlets.lines !== null || outlets.events !== null;
      const guard = isLong ? guardOf(request, reply) : null;
      const outcome = await once(request, input, run);
      guard?.stop();
      if (request.method === 'HEAD') outcome.rendered.pieces?.destroy();
      else if (outcome.rendered.pieces) guardOf(request, reply);
      send(reply, outlets, guard?.ended ? endedOutcome(guard.ended, request.id) : outcome);
      return reply;
    },
  });

  /** Null for who has no session that could end. */
  function guardOf({ exchange }: FastifyRequest, reply: FastifyReply): SessionGuard | null {
    const isSession = exchange.session !== null && exchange.session !== SCRAPER;
    return isSession ? guardSession(exchange, reply.raw, authenticate) : null;
  }

  function outletsOf({ method, headers }: FastifyRequest, reply: FastifyReply): Outlets {
    const isStream = route.stream !== undefined && wantsLines(headers.accept);
    const lastId = headers['last-event-id'];
    const isWanted = method !== 'HEAD';
    return {
      lines: isWanted && isStream ? new LineStream(reply, limits.streamBacklogBytes) : null,
      events:
        isWanted && route.events !== undefined
          ? { stream: new EventStream(reply, limits), lastId: typeof lastId === 'string' ? lastId : null }
          : null,
    };
  }

  /** Runs it straight, or under the request's Idempotency-Key. */
  async function once(request: FastifyRequest, input: Input, run: () => Promise<Rendered>): Promise<Outcome> {
    const { exchange, headers } = request;
    const key = route.method === 'GET' ? null : idempotencyKeyOf(headers['idempotency-key']);
    if (key === null || exchange.session === null) return { rendered: await run(), replayed: false };
    exchange.keepsRunning = true;
    const operatorId = exchange.session.operator.operator_id;
    const isSecret = route.secretAnswer === true;
    return await idempotent.run({ operatorId, key, route: route.id, content: input, isSecret }, run);
  }
}

const endedOutcome = (fault: Fault, requestId: string): Outcome => ({
  rendered: renderFault(fault, requestId),
  replayed: false,
});

/** Who comes with the token for scraping. */
const SCRAPER: Session = {
  operator: {
    operator_id: '0'.repeat(32),
    username: 'metrics',
    role: 'viewer',
    bootstrap: false,
    added_at: 0,
    added_by: 'system',
    removed_at: null,
    removed_by: null,
    public_key: '',
  },
  expiresAt: Number.MAX_SAFE_INTEGER,
};

const tlsRequired = (): Fault =>
  new Fault('tls_required', 'secrets are only taken and given over TLS, and this request came without it', {
    hint: 'use https, or call the API from its own host; a proxy in front has to send X-Forwarded-Proto: https',
  });

function send(reply: FastifyReply, { lines, events }: Outlets, { rendered, replayed }: Outcome): void {
  const { status, headers, payload, pieces } = rendered;
  if (replayed) reply.header('idempotent-replayed', 'true');
  const failed = status >= 400 && payload !== null;
  if (lines?.started) {
    if (failed) void lines.write({ event: 'error', error: JSON.parse(payload) });
    lines.end();
  } else if (events?.stream.started) {
    if (failed) events.stream.fail(JSON.parse(payload));
    events.stream.end();
  } else if (lines && replayed && status < 300 && payload !== null) {
    void lines.write({ event: 'result', result: JSON.parse(payload) });
    lines.end();
  } else {
    reply
      .code(status)
      .headers(headers)
      .send(reply.request.method === 'HEAD' ? (payload ?? undefined) : (pieces ?? payload ?? undefined));
  }
}
