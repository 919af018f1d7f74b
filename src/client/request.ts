/** What a call of a route takes and gives, as types that follow from the contract. */
import type { Contract, RouteId } from '../contract/contract.js';
import type { AnswerOf, BodyOf, EventOf, ParamsOf, QueryOf, RouteSpec, StreamOf } from '../contract/route.js';

export interface RequestOptions {
  /** Ends the call: it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Makes a write safe to repeat: the server answers the same key with its first answer. Applies get one by themselves. */
  readonly idempotencyKey?: string | undefined;
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

/** `params`, `query` and `body` of a route, as far as it has them, and options. */
export type CallInput<I extends RouteId> = InputOf<Contract[I]> & RequestOptions;

/** The rest parameter of a call: left out where every part may be left out. */
export type CallArguments<I extends RouteId> =
  Record<never, never> extends CallInput<I> ? [input?: CallInput<I>] : [input: CallInput<I>];

/** Body of a successful answer; undefined for one without a body. */
export type SuccessBody<I extends RouteId> = AnswerOf<Contract[I]>['body'];

/** A successful answer as a whole; header names in lower case. */
export type FullAnswer<I extends RouteId> = AnswerOf<Contract[I]> & {
  readonly headers: Readonly<Record<string, string>>;
};

/** Routes that stream. */
export type StreamingRouteId = {
  [I in RouteId]: Contract[I] extends { readonly stream: unknown } ? I : never;
}[RouteId];

/** One line of a route's stream; the `error` line is not among them: it ends the iteration with its Fault. */
export type StreamLine<I extends StreamingRouteId> = Exclude<StreamOf<Contract[I]>, { readonly event: 'error' }>;

/** Routes whose answer is no JSON, and ends. */
export type DownloadRouteId = {
  [I in RouteId]: Contract[I] extends { readonly events: unknown }
    ? never
    : Contract[I] extends { readonly mediaType: string }
      ? I
      : never;
}[RouteId];

/** Routes that send events without end. */
export type EventRouteId = {
  [I in RouteId]: Contract[I] extends { readonly events: unknown } ? I : never;
}[RouteId];

export interface ReceivedEvent<I extends EventRouteId> {
  readonly id: string;
  /** Null for what only tells how far the stream has come: to be gone on behind, like any other. */
  readonly data: EventOf<Contract[I]> | null;
}

/** Behind which event to go on; null or absent begins as the query says. */
export type EventArguments<I extends EventRouteId> = [
  input: CallInput<I> & { readonly lastEventId?: string | null | undefined },
];
