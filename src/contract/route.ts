/** The type of a route. Server, client, OpenAPI document and completion derive from routes. */
import type { Static, TSchema } from 'typebox';
import type { FaultCode } from '../kernel/fault.js';
import type { JsonValue } from '../kernel/json.js';
import type { Right } from './rights.js';

/** Who may call a route: everybody, operators with a right, or admins alone. */
export type Access = 'public' | Right | 'admin';

/**
 * What the grants of an operator mean for a route without `{node_id}` in its path: `filtered`, its handler serves the machines of
 * the grants alone; `shared`, it concerns no machine, or names alone, and is for every operator who holds its right somewhere.
 */
export type GrantUse = 'filtered' | 'shared';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** Announces that a later release takes a route away. */
export interface Deprecation {
  /** Day of the first release that announces it, as `YYYY-MM-DD`. */
  readonly since: string;
  /** Earliest day of the release without the route, as `YYYY-MM-DD`. */
  readonly sunset: string;
  /** The replacement, as a sentence: ``Use `listAgents` with `name`.`` */
  readonly instead: string;
}

/** A request to a route and its answer, recorded from a running orchestrator. */
export interface Example {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: JsonValue;
  readonly status: number;
  /** Text for an answer that is no JSON; absent for one without a body. */
  readonly answer?: JsonValue;
}

export interface RouteSpec {
  /** Name for the client and `operationId` in the OpenAPI document, in camelCase. */
  readonly id: string;
  readonly summary: string;
  /** Marks the operation in the OpenAPI document and each of its answers. */
  readonly deprecated?: Deprecation;
  readonly tag: string;
  readonly method: Method;
  /** Path below `/api/v1`, with parameters in braces. */
  readonly path: string;
  readonly access: Access;
  /** Rights with which operators may call it for what is their own; its handler looks whether it is. */
  readonly own?: readonly Right[];
  /** Absent for a route whose path names the machine, and for one that operators with grants may not call. */
  readonly grants?: GrantUse;
  /** The route carries or changes secrets, so it fails with `tls_required` without TLS, except from this machine. */
  readonly tls?: true;
  /** Successful answers contain a secret, so they are not stored, and a repeated `Idempotency-Key` is a conflict. */
  readonly secretAnswer?: true;
  /** The metrics token also gives access. */
  readonly scrape?: true;
  readonly params?: TSchema;
  readonly query?: TSchema;
  readonly body?: TSchema;
  /** Maximum bytes of the body, where it is above the general limit. */
  readonly bodyBytes?: number;
  /** Maximum members of the body, where it is above the general limit. */
  readonly bodyMembers?: number;
  /** An absent body counts as `{}`. */
  readonly bodyOptional?: boolean;
  /** Schemas of successful answers by status; null for an answer without a body. */
  readonly answers: Readonly<Record<number, TSchema | null>>;
  /** Media type of successful answers, if not JSON. */
  readonly mediaType?: string;
  /** Descriptions of additional headers of successful answers, by name. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Path below `/api/v1` of the record that an answer 201 has created, or 202 has begun work on. Names in braces are members
   * of the answer. Becomes the header `Location`.
   */
  readonly location?: string;
  /** True if its record can be replaced: answers have the ETag, and `takesIfMatch` writes check it. */
  readonly tagged?: true;
  /** Schema of one line of the `application/x-ndjson` stream, for clients that accept it. */
  readonly stream?: TSchema;
  /** Schema of an event's data. The answer is an endless `text/event-stream`. */
  readonly events?: TSchema;
  /** Schema of the data of an event of the type `gap`, which tells of events that are missing in the stream. */
  readonly gaps?: TSchema;
  /** Statuses of faults that differ from the general table. */
  readonly statuses?: Readonly<Partial<Record<FaultCode, number>>>;
  /** Faults in addition to those of every route with this access and shape. */
  readonly faults: readonly FaultCode[];
}

/** Returns true for a route that replaces or deletes what has an ETag. */
export const takesIfMatch = ({ method, tagged }: { readonly method: string; readonly tagged?: boolean }): boolean =>
  tagged === true && (method === 'PUT' || method === 'DELETE');

/** Returns how grants limit a route: by the machine in its path, by its handler, not at all, or to operators without grants. */
export const grantUse = ({ path, grants }: Pick<RouteSpec, 'path' | 'grants'>): GrantUse | 'machine' | 'unlimited' =>
  grants ?? (path.includes('{node_id}') ? 'machine' : 'unlimited');

/** Returns true for the answers that have a `Location`: a record was created, or work was begun. */
export const isLocated = (status: number): boolean => status === 201 || status === 202;

const dayOf = (date: string): Date => new Date(`${date}T00:00:00Z`);

/** Returns `Deprecation` (RFC 9745) and `Sunset` (RFC 8594); none for a route that stays. */
export function deprecationHeaders(deprecated: Deprecation | undefined): Readonly<Record<string, string>> {
  if (deprecated === undefined) return {};
  const { since, sunset } = deprecated;
  return { Deprecation: `@${dayOf(since).getTime() / 1000}`, Sunset: dayOf(sunset).toUTCString() };
}

/** Returns the sentence for the description of an operation. */
export const deprecationText = ({ since, sunset, instead }: Deprecation): string =>
  `Deprecated since ${since}; it stays until ${sunset} at least. ${instead}`;

/** Declares a route and keeps its literal types. */
export const route = <const R extends RouteSpec>(spec: R): R => spec;

type Shape<S> = S extends TSchema ? Static<S> : undefined;

/** Types of a route's parts. */
export type ParamsOf<R extends RouteSpec> = Shape<R['params']>;
export type QueryOf<R extends RouteSpec> = Shape<R['query']>;
export type BodyOf<R extends RouteSpec> = Shape<R['body']>;
export type StreamOf<R extends RouteSpec> = Shape<R['stream']>;
export type EventOf<R extends RouteSpec> = Shape<R['events']>;
export type GapOf<R extends RouteSpec> = Shape<R['gaps']>;
/** Union of `{status, body}` of all successful answers. */
export type AnswerOf<R extends RouteSpec> = {
  [S in keyof R['answers'] & number]: { readonly status: S; readonly body: Shape<R['answers'][S]> };
}[keyof R['answers'] & number];
