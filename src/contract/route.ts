/** The HTTP API as data: what a route is. Server, client, OpenAPI document and completion all derive from it. */
import type { Static, TSchema } from 'typebox';
import type { FaultCode } from '../kernel/fault-code.js';

/** Who may call a route. `viewer` is every operator; `operator` excludes viewers; `admin` is admins alone. */
export type Access = 'public' | 'viewer' | 'operator' | 'admin';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export interface RouteSpec {
  /** `operationId` in the OpenAPI document and the client's name for the route, in camelCase. */
  readonly id: string;
  readonly summary: string;
  readonly tag: string;
  readonly method: Method;
  /** Below `/api/v1`, parameters in braces. */
  readonly path: string;
  readonly access: Access;
  /** It carries or changes secrets: refused with `tls_required` when it did not come over TLS or from this machine. */
  readonly tls?: true;
  /** A successful answer holds a secret that is given once: it is not kept, and a repeated `Idempotency-Key` is a conflict. */
  readonly secretAnswer?: true;
  /** Whoever has the token for scraping may call it too. */
  readonly scrape?: true;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** Most bytes of the body where more than the general limit is taken. */
  readonly bodyBytes?: number;
  /** An absent body counts as `{}`. */
  readonly bodyOptional?: boolean;
  /** Successful answers by status; null is an answer without a body. */
  readonly answers: Readonly<Record<number, TSchema | null>>;
  /** Media type of successful answers when it is not JSON. */
  readonly mediaType?: string;
  /** Headers of successful answers that programs go by, beside those of every answer: name and what it says. */
  readonly headers?: Readonly<Record<string, string>>;
  /** One line of the `application/x-ndjson` stream that the same call gives when asked for. */
  readonly stream?: TSchema;
  /** The data of one event: the answer is a `text/event-stream` that goes on until one of both ends it. */
  readonly events?: TSchema;
  /** Faults that have another status here than elsewhere. */
  readonly statuses?: Readonly<Partial<Record<FaultCode, number>>>;
  /** Faults beyond those that every route of its access and shape can give. */
  readonly faults: readonly FaultCode[];
}

/** Declares a route; keeps the literal types. */
export const route = <const R extends RouteSpec>(spec: R): R => spec;

type Shape<S> = S extends TSchema ? Static<S> : undefined;

/** Types of a route's parts. */
export type ParamsOf<R extends RouteSpec> = Shape<R['params']>;
export type QueryOf<R extends RouteSpec> = Shape<R['query']>;
export type BodyOf<R extends RouteSpec> = Shape<R['body']>;
export type StreamOf<R extends RouteSpec> = Shape<R['stream']>;
export type EventOf<R extends RouteSpec> = Shape<R['events']>;
/** `{status, body}` for each successful answer. */
export type AnswerOf<R extends RouteSpec> = {
  [S in keyof R['answers'] & number]: { readonly status: S; readonly body: Shape<R['answers'][S]> };
}[keyof R['answers'] & number];
