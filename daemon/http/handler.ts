/** What a handler of a route gets and gives; one handler file per contract file, complete by type. */
import type { Readable } from 'node:stream';
import type { Operator } from '../../src/contract/operators.js';
import type { AnswerOf, BodyOf, EventOf, ParamsOf, QueryOf, RouteSpec, StreamOf } from '../../src/contract/route.js';
import type { RequestContext } from '../core/domain-event.js';

/** A request after authorisation and validation. */
export interface Call<R extends RouteSpec> {
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  readonly body: BodyOf<R>;
  readonly context: RequestContext;
  /** Who calls; null only on public routes. */
  readonly operator: R['access'] extends 'public' ? null : Operator;
  /** `https://host:port` as the client has named this server, for addresses in answers. */
  readonly baseUrl: string;
  /** The raw session token; null on public routes. */
  readonly token: R['access'] extends 'public' ? null : string;
  /**
   * Aborted when the client goes away, or the orchestrator stops and has waited long enough. A request with an
   * `Idempotency-Key` runs on without its client, who can ask for the answer again.
   */
  readonly signal: AbortSignal;
  /**
   * Writes one line of the `application/x-ndjson` stream; null when the client did not ask for one. The handler writes
   * every line itself, the last one included, and its answer is dropped once it has written a line. A Fault thrown after
   * the first line becomes the line `{event: "error", error: <problem document>}`. The promise resolves when the client
   * has room for more, or is gone; it never rejects. Who has much to send awaits it: a client that lets too much wait is
   * cut off. The last line is `{event: "result", result: <the answer's body>}`: a repeated request with the same
   * `Idempotency-Key` gets that line alone.
   */
  readonly stream: ((line: StreamOf<R>) => Promise<void>) | null;
  /** Of routes with `events`; null for a request that only wants to know whether it may (HEAD). */
  readonly events: Events<EventOf<R>> | null;
}

/**
 * The `text/event-stream` of a call. Its promises resolve when the client has room for more, or is gone; they never reject.
 * A client that takes nothing for long is cut off. The handler ends the stream by returning, and its answer is dropped;
 * a Fault that it throws after `open` becomes the event `error`.
 */
export interface Events<T> {
  /** The `Last-Event-ID` of the request, as it was sent. */
  readonly lastId: string | null;
  /** Answers with 200, and tells the ID that the stream begins behind. Before that the handler may still refuse. */
  open(place: string | null): Promise<void>;
  send(id: string, data: T): Promise<void>;
  /** To be called each few seconds when there is nothing to send; tells the ID that the stream has come to. */
  beat(place: string | null): Promise<void>;
}

/** A body that is no JSON may come in pieces. */
type OrStream<R extends RouteSpec, A> = R extends { readonly mediaType: string }
  ? A extends { readonly status: infer S }
    ? { readonly status: S; readonly body: string | Readable }
    : never
  : A;

type Answer<R extends RouteSpec> = OrStream<R, AnswerOf<R>> & {
  readonly headers?: Readonly<Record<string, string>>;
};

export type Handler<R extends RouteSpec> = (call: Call<R>) => Promise<Answer<R>>;

/** A handler for every route of a contract file: a missing one does not compile. */
export type HandlersFor<Routes extends Readonly<Record<string, RouteSpec>>> = {
  readonly [K in keyof Routes]: Handler<Routes[K]>;
};
