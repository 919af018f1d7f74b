/** The API client over HTTP: turns route calls into requests, and answers into bodies and faults. */
import type { Agent } from 'node:http';
import type { RouteId } from '../contract/contract.js';
import type { Clock } from '../kernel/clock.js';
import { Fault } from '../kernel/fault.js';
import type { NewId } from '../kernel/ids.js';
import type {
  ApiClient,
  CallArguments,
  DownloadRouteId,
  EventArguments,
  EventRouteId,
  FullAnswer,
  RawAnswer,
  RawRequest,
  ReceivedEvent,
  StreamingRouteId,
  StreamLine,
  SuccessBody,
} from './api-client.js';
import { BASE, CALLS } from './calls.js';
import type { Connection } from './connection.js';
import {
  type AnyInput,
  acceptHeaders,
  buildRequest,
  faultOfProblem,
  isSuccess,
  jsonHeaders,
  mediaTypeOf,
  readFailure,
  readSuccess,
} from './http-messages.js';
import { logIn, type Signer } from './login.js';
import { Session, tokenCache } from './session.js';
import { openDownload, openEvents, readLines } from './streamed-body.js';
import { createTransport, type Transport, type TransportAnswer, type TransportRequest, textOf } from './transport.js';
import { isBroken } from './unreachable.js';

interface ConnectOptions {
  readonly connection: Connection;
  /** Opens the operator's key. Called at the first login, which most calls do not need. */
  signer(): Promise<Signer>;
  readonly clock: Clock;
  /** Makes idempotency keys. */
  readonly newId: NewId;
  /** Shows a warning to the operator: a login that is not bound to the server, a token that could not be stored. */
  warn(message: string): void;
}

/**
 * Creates the client of a connection. The first call connects. Throws `tls_required` for plain HTTP to another machine and
 * `invalid_config` for an unusable CA file.
 */
export function connect({ connection, signer, clock, newId, warn }: ConnectOptions): ApiClient {
  const { url, token, allowUnboundLogin } = connection;
  const transport = createTransport(connection);
  const session = new Session({
    fixed: token,
    cache: tokenCache(connection),
    clock,
    warn,
    logIn: async () => await logIn({ transport, url, signer: await signer(), allowUnbound: allowUnboundLogin, warn }),
  });
  return new HttpApiClient({ url, transport, session, newId });
}

interface HttpApiClientOptions {
  readonly url: URL;
  readonly transport: Transport;
  readonly session: Session;
  readonly newId: NewId;
}

/** Writes that get an idempotency key automatically, because a repetition would be a second operation. */
const KEYED: ReadonlySet<string> = new Set<RouteId>(['applyAgent', 'applyAssignment', 'applyRollout']);
const JSON_TYPE = 'application/json';
const NDJSON = 'application/x-ndjson';
const ANY_TYPE = '*/*';
const EVENT_STREAM = 'text/event-stream';

/** Trusts that answers match the contract: the server validates them, not its clients. */
class HttpApiClient implements ApiClient {
  readonly url: URL;
  readonly connections: Agent;
  private readonly options: HttpApiClientOptions;
  private readonly transport: AuthorizedTransport;

  constructor(options: HttpApiClientOptions) {
    this.options = options;
    this.url = options.url;
    this.connections = options.transport.connections;
    this.transport = new AuthorizedTransport(options);
  }

  async call<I extends RouteId>(id: I, ...[input]: CallArguments<I>): Promise<SuccessBody<I>> {
    const answer = await this.send(id, input, JSON_TYPE);
    return (await readSuccess(answer, this.url)) as SuccessBody<I>;
  }

  async callWithHeaders<I extends RouteId>(id: I, ...[input]: CallArguments<I>): Promise<FullAnswer<I>> {
    const answer = await this.send(id, input, JSON_TYPE);
    const { status, headers } = answer;
    return { status, headers, body: await readSuccess(answer, this.url) } as FullAnswer<I>;
  }

  async *stream<I extends StreamingRouteId>(id: I, ...[input]: CallArguments<I>): AsyncIterable<StreamLine<I>> {
    const answer = await this.send(id, input, NDJSON);
    if (mediaTypeOf(answer) !== NDJSON) {
      // The server had nothing to stream, so its answer takes the place of the last line.
      yield { event: 'result', result: await readSuccess(answer, this.url) } as StreamLine<I>;
      return;
    }
    for await (const line of readLines(answer.body, this.url)) {
      refuseErrorLine(line);
      yield line as StreamLine<I>;
    }
  }

  async events<I extends EventRouteId>(
    id: I,
    ...[{ lastEventId, signal, ...input }]: EventArguments<I>
  ): Promise<AsyncIterable<ReceivedEvent<I>>> {
    const connect = async (ending: AbortSignal) => {
      const request = buildRequest(CALLS[id], { ...input, signal: ending }, EVENT_STREAM);
      const headers = lastEventId ? { ...request.headers, 'last-event-id': lastEventId } : request.headers;
      const answer = await this.transport.send({ ...request, headers }, false);
      if (!isSuccess(answer)) throw await this.transport.failure(answer);
      return answer;
    };
    return (await openEvents(connect, { url: this.url, signal })) as AsyncIterable<ReceivedEvent<I>>;
  }

  async download<I extends DownloadRouteId>(id: I, ...[input]: CallArguments<I>): Promise<AsyncIterable<Uint8Array>> {
    const given: AnyInput = input ?? {};
    return await openDownload((signal) => this.send(id, { ...given, signal }, ANY_TYPE), this.url, given.signal);
  }

  async raw(method: string, path: string, request: RawRequest = {}): Promise<RawAnswer> {
    const { body, headers = {}, idempotencyKey, ifMatch, signal } = request;
    const payload = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const full = fullPath(path);
    const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    const sent = {
      method,
      path: full,
      headers: {
        ...(payload === undefined ? acceptHeaders : jsonHeaders),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
        ...Object.fromEntries(lower),
      },
      body: payload,
      signal,
    };
    const answer = await this.transport.send(sent, isPublic(method, full));
    return { status: answer.status, headers: answer.headers, text: await textOf(answer) };
  }

  async logOut(): Promise<void> {
    const { session } = this.options;
    const token = session.held();
    if (token === null) return;
    const headers = { ...acceptHeaders, authorization: `Bearer ${token}` };
    const { method, path } = CALLS.endSession;
    const request = { method, path: BASE + path, headers, body: undefined, signal: undefined };
    const answer = await this.options.transport.request(request);
    session.forget();
    // 401 means that the session has already ended.
    if (!isSuccess(answer) && answer.status !== 401) throw await this.transport.failure(answer);
    await textOf(answer);
  }

  close(): void {
    this.options.transport.close();
  }

  /** Calls a route and returns its successful answer. Throws the fault of any other answer. */
  private async send(id: RouteId, input: AnyInput = {}, accept: string): Promise<TransportAnswer> {
    const route = CALLS[id];
    const idempotencyKey = input.idempotencyKey ?? (KEYED.has(id) ? this.options.newId() : undefined);
    const request = buildRequest(route, { ...input, idempotencyKey }, accept);
    const answer = await this.transport.send(request, route.access === 'public');
    if (!isSuccess(answer)) throw await this.transport.failure(answer);
    return answer;
  }
}

/** Throws the fault of an `error` line. */
function refuseErrorLine(line: unknown): void {
  if (typeof line !== 'object' || line === null || !('event' in line) || line.event !== 'error') return;
  const fault = 'error' in line ? faultOfProblem(line.error) : null;
  throw fault ?? new Fault('internal', 'the orchestrator ended the stream without a reason');
}

/** Returns a path with the API's prefix. Throws `usage` for text that is no path. */
function fullPath(path: string): string {
  if (!/^\/[\x21-\x7e]*$/.test(path)) {
    throw new Fault('usage', `${JSON.stringify(path)} is no path`, {
      hint: 'such as /agents or /api/v1/agents?limit=10',
    });
  }
  return /^\/api\//.test(path) ? path : BASE + path;
}

function isPublic(method: string, path: string): boolean {
  const plain = path.split('?')[0];
  return Object.values(CALLS).some(
    (route) => route.access === 'public' && route.method === method && BASE + route.path === plain,
  );
}

interface AuthorizedTransportOptions {
  readonly transport: Transport;
  readonly session: Session;
  readonly url: URL;
}

/** Sends requests with a session token. Repeats a request once after a new login or a broken connection. */
class AuthorizedTransport {
  private readonly options: AuthorizedTransportOptions;

  constructor(options: AuthorizedTransportOptions) {
    this.options = options;
  }

  /** Returns the answer with any status. Logs in once when the server refuses the token. */
  async send(request: TransportRequest, isPublic: boolean): Promise<TransportAnswer> {
    if (isPublic) return await this.attempt(request);
    const { session } = this.options;
    const token = await session.token();
    const answer = await this.attempt(withToken(request, token));
    if (answer.status !== 401 || !session.renewable) return answer;
    // The body is read to its end, so that the connection can be reused.
    await textOf(answer);
    return await this.attempt(withToken(request, await session.renew(token)));
  }

  /** Returns the fault of an unsuccessful answer. */
  async failure(answer: TransportAnswer): Promise<Error> {
    const fault = await readFailure(answer, this.options.url);
    if (answer.status !== 401 || this.options.session.renewable || !(fault instanceof Fault)) return fault;
    return new Fault(fault.code, 'the session token in ORCH_TOKEN is unknown or over', {
      hint: 'set a fresh one, or unset it to log in with your key',
      ...(fault.data ? { data: fault.data } : {}),
    });
  }

  private async attempt(request: TransportRequest): Promise<TransportAnswer> {
    const { transport } = this.options;
    try {
      return await transport.request(request);
    } catch (error) {
      if (!isBroken(error) || !isRepeatable(request)) throw error;
      return await transport.request(request);
    }
  }
}

const withToken = (request: TransportRequest, token: string): TransportRequest => ({
  ...request,
  headers: { ...request.headers, authorization: `Bearer ${token}` },
});

/** Returns true when the request is safe to repeat. */
const isRepeatable = ({ method, headers }: TransportRequest): boolean =>
  method === 'GET' || method === 'HEAD' || headers['idempotency-key'] !== undefined;
