/**
 * Types of route handlers: the call they receive, and the answer they return. One handler file per contract file,
 * complete by type.
 */
import type { Readable } from 'node:stream';
import type { Operator } from '../../src/contract/operators.js';
import type {
  AnswerOf,
  BodyOf,
  EventOf,
  GapOf,
  ParamsOf,
  QueryOf,
  RouteSpec,
  StreamOf,
} from '../../src/contract/route.js';
import type { RequestContext } from '../core/domain-event.js';
import type { Rights } from '../core/rights.js';
import type { StaticText } from './compression.js';

/** A request after authorisation and validation. */
export interface Call<R extends RouteSpec> {
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  readonly body: BodyOf<R>;
  readonly context: RequestContext;
  /** Operator that makes the request; null only on public routes. */
  readonly operator: R['access'] extends 'public' ? null : Operator;
  /** What the operator may do, and where; null only on public routes. */
  readonly rights: R['access'] extends 'public' ? null : Rights;
  /** Ends the answer while it is open when `check` throws `not_granted` or `agent_not_found`. */
  keepPermitted(check: (rights: Rights) => Promise<void>): void;
  /** Scheme and authority that the client used, for addresses in answers: `https://host:port`. */
  readonly baseUrl: string;
  /** Raw session token; null on public routes. */
  readonly token: R['access'] extends 'public' ? null : string;
  /**
   * Aborted when the client disconnects, or when the drain timeout of a stop expires. A request with an
   * `Idempotency-Key` runs on without its client, which can retry for the answer.
   */
  readonly signal: AbortSignal;
  /**
   * Writes one line of the `application/x-ndjson` stream; null when the client did not ask for one.
   * The handler writes every line itself, including the last: `{event: "result", result: <the answer's body>}`. Its
   * returned answer is dropped once it has written a line. A repeated request with the same `Idempotency-Key` gets
   * only that last line. A Fault thrown after the first line becomes the line `{event: "error", error: <problem
   * document>}`.
   * The promise resolves when the client has room for more or is disconnected; it never rejects. Await it before
   * sending more: a client with too large a backlog is disconnected.
   */
  readonly stream: ((line: StreamOf<R>) => Promise<void>) | null;
  /** Event stream of routes with `events`; null for a HEAD request, which only checks access. */
  readonly events: Events<EventOf<R>, GapOf<R>> | null;
}

/**
 * The `text/event-stream` of a call. Its promises resolve when the client has room for more or is disconnected; they
 * never reject. A client that stalls is disconnected. The handler ends the stream by returning, and its answer is
 * dropped. A Fault thrown after `open` becomes the event `error`.
 */
export interface Events<T, G = never> {
  /** `Last-Event-ID` of the request, as sent. */
  readonly lastId: string | null;
  /** Answers with 200 and sends the ID at which the stream starts. Before this call the handler may still refuse. */
  open(place: string | null): Promise<void>;
  send(id: string, data: T): Promise<void>;
  /** Tells the client of events that it does not get. The ID of the stream stays. */
  gap(data: G): Promise<void>;
  /** Sends a heartbeat with the stream's current ID. Call it every few seconds when there is nothing to send. */
  beat(place: string | null): Promise<void>;
}

/** A body of type `T` that a handler has as JSON text. */
export class JsonText<T> {
  declare readonly of: T;
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Answer whose body may be streamed when it is not JSON, and be text when it is. */
type InAnyForm<R extends RouteSpec, A> = A extends { readonly status: infer S; readonly body: infer B }
  ? R extends { readonly mediaType: string }
    ? { readonly status: S; readonly body: string | StaticText | Readable }
    : { readonly status: S; readonly body: B | JsonText<B> | StaticText<B> }
  : never;

type Answer<R extends RouteSpec> = InAnyForm<R, AnswerOf<R>> & {
  readonly headers?: Readonly<Record<string, string>>;
};

export type Handler<R extends RouteSpec> = (call: Call<R>) => Promise<Answer<R>>;

/** Handlers for every route of a contract file; a missing one does not compile. */
export type HandlersFor<Routes extends Readonly<Record<string, RouteSpec>>> = {
  readonly [K in keyof Routes]: Handler<Routes[K]>;
};
