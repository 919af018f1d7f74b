/** The typed client of the API. All types derive from the contract. */
import type { Agent } from 'node:http';
import type { Contract, RouteId } from '../contract/contract.js';
import type {
  AnswerOf,
  BodyOf,
  EventOf,
  GapOf,
  Method,
  ParamsOf,
  QueryOf,
  RouteSpec,
  StreamOf,
} from '../contract/route.js';

export interface RawRequest extends RequestOptions {
  /** Text is sent unchanged, other values as JSON; undefined means no body. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer with any status, including problems. */
export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/**
 * Every method logs in when the session is missing or has ended. Every method throws a Fault: the server's with its code,
 * errors and data (including `data.request_id` and `data.status`), `unreachable` without an answer, `tls_unknown` and
 * `tls_mismatch` before any byte of the request is sent.
 */
export interface ApiClient {
  readonly url: URL;
  /** Pool of verified connections, for upgrades to a WebSocket. */
  readonly connections: Agent;
  /** Calls a route and returns the body of its successful answer. */
  call<I extends RouteId>(id: I, ...input: CallArguments<I>): Promise<SuccessBody<I>>;
  /** Calls a route and returns its successful answer with status and headers. */
  callWithHeaders<I extends RouteId>(id: I, ...input: CallArguments<I>): Promise<FullAnswer<I>>;
  /** Yields the lines of a streaming route. Leaving the loop ends the request; an `error` line is thrown as its Fault. */
  stream<I extends StreamingRouteId>(id: I, ...input: CallArguments<I>): AsyncIterable<StreamLine<I>>;
  /**
   * Connects to a route of events and yields events until the server ends the stream. Throws the Fault of a problem that
   * ends the stream, and `unreachable` for a broken or silent connection. See `followEvents`.
   */
  events<I extends EventRouteId>(id: I, ...input: EventArguments<I>): Promise<AsyncIterable<ReceivedEvent<I>>>;
  /**
   * Yields the bytes of a route whose answer is not JSON. Leaving the loop ends the request. Throws `unreachable` for a
   * broken or silent connection.
   */
  download<I extends DownloadRouteId>(id: I, ...input: CallArguments<I>): Promise<AsyncIterable<Uint8Array>>;
  /**
   * Sends any request below the server's address, with the login. Never throws for a status.
   * @param path such as `/api/v1/status?…`; `/status` stands for the same
   */
  raw(method: Method | (string & {}), path: string, request?: RawRequest): Promise<RawAnswer>;
  /** Ends the session at the server and removes the cached token. Does nothing without a session. */
  logOut(): Promise<void>;
  /** Closes idle connections. */
  close(): void;
}

interface RequestOptions {
  /** Aborts the call, which rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Makes a write safe to repeat: the server answers a repeated key with its first answer. Applies get one automatically. */
  readonly idempotencyKey?: string | undefined;
  /** ETag of what a write was made for: the call throws `precondition_failed` when another request has changed it since. */
  readonly ifMatch?: string | undefined;
}

type Member<Name extends string, Value> = [Value] extends [undefined]
  ? unknown
  : Record<never, never> extends Value
    ? { readonly [K in Name]?: Value }
    : { readonly [K in Name]: Value };

type BodyMember<R extends RouteSpec> = R['bodyOptional'] extends true
  ? { readonly body?: BodyOf<R> }
  : Member<'body', BodyOf<R>>;

type InputOf<R extends RouteSpec> = Member<'params', ParamsOf<R>> & Member<'query', QueryOf<R>> & BodyMember<R>;

/** `params`, `query` and `body` of a route, if it has them, and options. */
type CallInput<I extends RouteId> = InputOf<Contract[I]> & RequestOptions;

/** The rest parameter of a call; optional when every part is optional. */
export type CallArguments<I extends RouteId> =
  Record<never, never> extends CallInput<I> ? [input?: CallInput<I>] : [input: CallInput<I>];

/** Body of a successful answer; undefined without a body. */
export type SuccessBody<I extends RouteId> = AnswerOf<Contract[I]>['body'];

/** A successful answer with its headers; header names in lower case. */
export type FullAnswer<I extends RouteId> = AnswerOf<Contract[I]> & {
  readonly headers: Readonly<Record<string, string>>;
};

/** Routes that stream NDJSON. */
export type StreamingRouteId = {
  [I in RouteId]: Contract[I] extends { readonly stream: unknown } ? I : never;
}[RouteId];

/** One line of a route's stream, except the `error` line, which ends the iteration with its Fault. */
export type StreamLine<I extends StreamingRouteId> = Exclude<StreamOf<Contract[I]>, { readonly event: 'error' }>;

/** Routes with a finite answer that is not JSON. */
export type DownloadRouteId = {
  [I in RouteId]: Contract[I] extends { readonly events: unknown }
    ? never
    : Contract[I] extends { readonly mediaType: string }
      ? I
      : never;
}[RouteId];

/** Routes with an endless stream of events. */
export type EventRouteId = {
  [I in RouteId]: Contract[I] extends { readonly events: unknown } ? I : never;
}[RouteId];

export interface ReceivedEvent<I extends EventRouteId> {
  readonly id: string;
  /** Null for an event that only advances `id`. */
  readonly data: EventOf<Contract[I]> | null;
  /** Events that are missing before the next one; null for any other event. */
  readonly gap: GapOf<Contract[I]> | null;
}

/** `lastEventId` resumes after that event; null or absent begins at the query's position. */
export type EventArguments<I extends EventRouteId> = [
  input: CallInput<I> & { readonly lastEventId?: string | null | undefined },
];
