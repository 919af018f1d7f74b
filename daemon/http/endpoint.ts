/** The endpoint of one route: access check, input, handler and answer. */
import { isCompressible } from '../../src/contract/compressible.js';
import { type Access, deprecationHeaders, grantUse, type RouteSpec } from '../../src/contract/route.js';
import { Fault, isFault } from '../../src/kernel/fault.js';
import { notGranted, Rights } from '../core/rights.js';
import {
  type Authenticate,
  type Authorize,
  type AuthorizeOn,
  bearerToken,
  guardSession,
  requireSession,
  type SessionGuard,
} from './access.js';
import { encoded } from './compression.js';
import type { Exchange } from './exchange.js';
import type { HttpLimits } from './http-limits.js';
import { type IdempotentRequests, idempotencyKeyOf, type Outcome } from './idempotency.js';
import { type Rendered, relocated, renderFault, sendRendered } from './rendered.js';
import { readBytes } from './request-body.js';
import { announcesBody, type Input, inputReader } from './request-input.js';
import { type AnyHandler, type RunOptions, runner, type StreamTargets } from './run-handler.js';
import type { Session } from './session.js';
import { EventStream, isGone, LineStream, wantsLines } from './streams.js';

interface EndpointOptions extends RunOptions {
  readonly authenticate: Authenticate;
  readonly authorize: Authorize;
  readonly authorizeOn: AuthorizeOn;
  /** Returns true for the token that may only scrape metrics. */
  readonly isScraper: (token: string) => boolean;
  readonly idempotent: IdempotentRequests;
  readonly limits: HttpLimits;
}

/** Serves the requests of one route. */
export interface Endpoint {
  readonly route: RouteSpec;
  /** Serves a request. Throws the faults that precede its handler. */
  serve(exchange: Exchange, params: Params): Promise<void>;
}

export function createEndpoint(route: RouteSpec, handler: AnyHandler, options: EndpointOptions): Endpoint {
  const { authenticate, authorize, authorizeOn, idempotent, isScraper, limits } = options;
  const readInput = inputReader(route, limits);
  const runHandler = runner(route, handler, options);
  const bodyBytes =
    route.access === 'public' ? limits.publicBodyBytes : Math.max(limits.bodyBytes, route.bodyBytes ?? 0);
  const compresses = isCompressible(route);
  const limit = grantUse(route);
  // Also without a stream: the answer would tell what the machine has done after it left the grants.
  const isLong = route.stream !== undefined || route.events !== undefined || route.access === 'verify';
  const announced = Object.entries(deprecationHeaders(route.deprecated));
  return {
    route,
    serve: async (exchange, params) => {
      const { request, response, requestId } = exchange;
      for (const [name, value] of announced) response.setHeader(name, value);
      await admit(exchange, params);
      const hasBody = route.method !== 'GET' && announcesBody(request.headers);
      const body = hasBody ? await readBytes(request, bodyBytes) : NOTHING;
      const input = readInput({ request, params, body });
      const outlets = outletsOf(exchange);
      const run = () => runHandler(exchange, input, outlets);
      const isOpen = outlets.lines !== null || outlets.events !== null;
      const guard = isLong ? guardOf(exchange, isOpen ? readmit : withhold, params) : null;
      const outcome = await once(exchange, input, run);
      guard?.stop();
      const refused = guard?.ended ?? (isLong && !isOpen ? await faultOf(withhold(exchange, params)) : null);
      if (request.method === 'HEAD') outcome.rendered.pieces?.destroy();
      else if (outcome.rendered.pieces) guardOf(exchange, readmit, params);
      if (isGone(response)) outcome.rendered.pieces?.destroy();
      else await send(exchange, outlets, refused ? endedOutcome(refused, requestId) : outcome, compresses);
    },
  };

  /**
   * Authenticates and authorises the request. Throws `unauthenticated`, `role_forbidden`, `admin_required`, `not_granted`,
   * `agent_not_found` or `tls_required`.
   */
  async function admit(exchange: Exchange, params: Params): Promise<void> {
    if (route.access === 'public') return;
    exchange.token = bearerToken(exchange.request.headers.authorization);
    const scrapes = route.scrape === true && isScraper(exchange.token);
    exchange.session = scrapes ? SCRAPER : await permitted(exchange.token, params);
    if (route.tls === true && !exchange.isPrivate) throw tlsRequired();
  }

  /**
   * Throws the fault in place of an answer that would tell of machines which left the grants while it was awaited. The work goes
   * on all the same, so a session that has ended meanwhile ends nothing: whoever logs in again would repeat it.
   */
  async function withhold(exchange: Exchange, params: Params): Promise<void> {
    const { session, token } = exchange;
    if (!session?.rights.isLimited) return;
    const { rights } = await permits((await authenticate(token ?? '')) ?? session, params);
    await exchange.stillPermitted?.(rights);
  }

  /** Returns the session of a token that permits the request. Throws as `admit`. */
  async function permitted(token: string, params: Params): Promise<Session> {
    return permits(requireSession(await authenticate(token)), params);
  }

  /** Returns the session if it permits the request. Throws as `admit`. */
  async function permits(session: Session, params: Params): Promise<Session> {
    const access = accessOf(route, session.rights);
    authorize(access, session);
    // No grants limit an admin.
    if (access === 'public' || access === 'admin' || !session.rights.isLimited) return session;
    if (limit === 'machine') await authorizeOn(access, session, params.node_id ?? '');
    if (limit === 'unlimited') throw notGranted(access, 'all machines, which this needs');
    return session;
  }

  /** Throws the fault with which the request of an open answer would be refused now. */
  async function readmit(exchange: Exchange, params: Params): Promise<void> {
    const { rights } = await permitted(exchange.token ?? '', params);
    // The handler has filtered by the grants of before.
    if (rights.key !== exchange.session?.rights.key) throw otherRights();
    await exchange.stillPermitted?.(rights);
  }

  /** Returns a guard of the request's session, or null when it has no session that could end. @param check throws what ends the answer */
  function guardOf(
    exchange: Exchange,
    check: (exchange: Exchange, params: Params) => Promise<void>,
    params: Params,
  ): SessionGuard | null {
    const isSession = exchange.session !== null && exchange.session !== SCRAPER;
    return isSession ? guardSession(exchange, exchange.response, () => check(exchange, params)) : null;
  }

  function outletsOf({ request: { method, headers }, response }: Exchange): StreamTargets {
    const isStream = route.stream !== undefined && wantsLines(headers.accept);
    const lastId = headers['last-event-id'];
    const isWanted = method !== 'HEAD';
    return {
      lines: isWanted && isStream ? new LineStream(response, limits.streamBacklogBytes, limits.heartbeatMs) : null,
      events:
        isWanted && route.events !== undefined
          ? { stream: new EventStream(response, limits), lastId: typeof lastId === 'string' ? lastId : null }
          : null,
    };
  }

  /** Runs the request directly, or under its Idempotency-Key. */
  async function once(exchange: Exchange, input: Input, run: () => Promise<Rendered>): Promise<Outcome> {
    const { headers } = exchange.request;
    const key = route.method === 'GET' ? null : idempotencyKeyOf(headers['idempotency-key']);
    if (key === null || exchange.session === null) return { rendered: await run(), replayed: false };
    exchange.keepsRunning = true;
    const operatorId = exchange.session.operator.operator_id;
    const isSecret = route.secretAnswer === true;
    const { requestId } = exchange;
    const ifMatch = headers['if-match'];
    const { rights } = exchange.session;
    const content = {
      ...input,
      ...(ifMatch !== undefined && { ifMatch }),
      // Another operator than before, as far as the first answer is concerned.
      ...(rights.isLimited && { rights: rights.key }),
    };
    const outcome = await idempotent.run({ operatorId, key, requestId, route: route.id, content, isSecret }, run);
    if (outcome.replayed && limit === 'filtered' && rights.isLimited && showsMachines(outcome)) throw notShownAgain();
    return outcome.replayed ? { ...outcome, rendered: relocated(route, outcome.rendered) } : outcome;
  }
}

type Params = Readonly<Record<string, string>>;

const faultOf = (work: Promise<void>): Promise<Fault | null> =>
  work.then(
    () => null,
    (error) => {
      if (isFault(error)) return error;
      throw error;
    },
  );

const NOTHING = Buffer.alloc(0);

const endedOutcome = (fault: Fault, requestId: string): Outcome => ({
  rendered: renderFault(fault, requestId),
  replayed: false,
});

/** Session of requests with the token for scraping. */
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
  rights: new Rights('viewer', null),
  expiresAt: Number.MAX_SAFE_INTEGER,
};

/** Returns what the operator calls the route with: its access, or else a right for what is their own. */
function accessOf({ access, own = [] }: RouteSpec, rights: Rights): Access {
  const ways: readonly Access[] = [access, ...own];
  return ways.find((one) => one !== 'public' && one !== 'admin' && rights.has(one)) ?? access;
}

const showsMachines = ({ rendered }: Outcome): boolean => rendered.status < 300 && rendered.payload !== null;

/** Only the handler knows whether the grants still permit what the first answer shows. */
const notShownAgain = (): Fault =>
  new Fault(
    'idempotency_conflict',
    'the request with this Idempotency-Key was done, and its answer is not given again',
    {
      hint: 'read what it did, for instance with: orch rollouts list',
    },
  );

/** A client logs in again, and goes on with what it may do now. */
const otherRights = (): Fault =>
  new Fault('unauthenticated', 'what you may do has changed, so this answer ends', { hint: 'ask again' });

const tlsRequired = (): Fault =>
  new Fault('tls_required', 'secrets are only taken and given over TLS, and this request came without it', {
    hint: 'use https, or call the API from its own host; a proxy in front has to send X-Forwarded-Proto: https',
  });

async function send(
  exchange: Exchange,
  { lines, events }: StreamTargets,
  { rendered, replayed }: Outcome,
  compresses: boolean,
): Promise<void> {
  const { response } = exchange;
  const { status, payload } = rendered;
  const failed = status >= 400 && payload !== null;
  if (lines?.started) {
    if (failed) void lines.write({ event: 'error', error: JSON.parse(payload) });
    else if (!lines.hasContent && payload !== null) void lines.write({ event: 'result', result: JSON.parse(payload) });
    lines.end();
    return;
  }
  if (events?.stream.started) {
    if (failed) events.stream.fail(JSON.parse(payload));
    events.stream.end();
    return;
  }
  if (replayed) response.setHeader('idempotent-replayed', 'true');
  if (lines && replayed && status < 300 && payload !== null) {
    void lines.write({ event: 'result', result: JSON.parse(payload) });
    lines.end();
    return;
  }
  const answer = compresses
    ? await encoded(rendered, exchange.request.headers['accept-encoding']?.toString())
    : rendered;
  if (!isGone(response)) sendRendered(exchange, answer);
}
