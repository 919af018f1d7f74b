/** The client over HTTP: turns calls of routes into requests, and answers into bodies and faults. */
import type { Agent } from 'node:http';
import type { RouteId } from '../contract/contract.js';
import { Fault } from '../kernel/fault.js';
import type { NewId } from '../kernel/ids.js';
import type { ApiClient, RawAnswer, RawRequest } from './api-client.js';
import { AuthorizedTransport } from './authorized-transport.js';
import { type AnyInput, buildRequest } from './build-request.js';
import { BASE, CALLS } from './calls.js';
import { readLines } from './lines.js';
import { openDownload } from './open-download.js';
import { openEvents } from './open-events.js';
import { faultOfProblem } from './problem-fault.js';
import { isSuccess, mediaTypeOf, readSuccess } from './read-answer.js';
import type {
  CallArguments,
  DownloadRouteId,
  EventArguments,
  EventRouteId,
  FullAnswer,
  ReceivedEvent,
  StreamingRouteId,
  StreamLine,
  SuccessBody,
} from './request.js';
import { acceptHeaders, jsonHeaders } from './request-headers.js';
import type { Session } from './session.js';
import { type Transport, type TransportAnswer, textOf } from './transport.js';

export interface HttpApiClientOptions {
  readonly url: URL;
  readonly transport: Transport;
  readonly session: Session;
  readonly newId: NewId;
}

/** Writes that get a key by themselves, because done twice they are not what was asked for. */
const KEYED: ReadonlySet<string> = new Set<RouteId>(['applyAgent', 'applyAssignment']);
const JSON_TYPE = 'application/json';
const NDJSON = 'application/x-ndjson';
const ANY_TYPE = '*/*';
const EVENT_STREAM = 'text/event-stream';

/** What the server answers is taken for what the contract says: the server checks it, not its clients. */
export class HttpApiClient implements ApiClient {
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

  async callFull<I extends RouteId>(id: I, ...[input]: CallArguments<I>): Promise<FullAnswer<I>> {
    const answer = await this.send(id, input, JSON_TYPE);
    const { status, headers } = answer;
    return { status, headers, body: await readSuccess(answer, this.url) } as FullAnswer<I>;
  }

  async *stream<I extends StreamingRouteId>(id: I, ...[input]: CallArguments<I>): AsyncIterable<StreamLine<I>> {
    const answer = await this.send(id, input, NDJSON);
    if (mediaTypeOf(answer) !== NDJSON) {
      // The server had nothing to stream: its answer stands for the last line.
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
    const { body, headers = {}, idempotencyKey, signal } = request;
    const payload = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const full = fullPath(path);
    const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    const sent = {
      method,
      path: full,
      headers: {
        ...(payload === undefined ? acceptHeaders : jsonHeaders),
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
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
    // A session that is over already is as good as ended.
    if (!isSuccess(answer) && answer.status !== 401) throw await this.transport.failure(answer);
    await textOf(answer);
  }

  close(): void {
    this.options.transport.close();
  }

  /** The successful answer to a route. */
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

/** A path below the API, with or without its prefix. Throws `usage`. */
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
