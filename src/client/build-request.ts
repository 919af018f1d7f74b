/** Makes the request of a route from its parts. */
import { Fault } from '../kernel/fault.js';
import { BASE, type RouteCall } from './calls.js';
import { acceptHeaders, jsonHeaders } from './request-headers.js';
import type { TransportRequest } from './transport.js';

/** Any route's input; what it may be for which route, the types of `CallInput` say. */
export interface AnyInput {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly idempotencyKey?: string | undefined;
}

export function buildRequest(route: RouteCall, input: AnyInput, accept: string): TransportRequest {
  const body = input.body === undefined || !route.hasBody ? undefined : JSON.stringify(input.body);
  const key = input.idempotencyKey;
  return {
    method: route.method,
    path: BASE + fillPath(route, input.params ?? {}) + queryText(input.query ?? {}),
    headers: {
      ...(body === undefined ? acceptHeaders : jsonHeaders),
      accept,
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    body,
    signal: input.signal,
  };
}

function fillPath({ id, path }: RouteCall, params: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    // An empty segment would be another path.
    if (typeof value !== 'string' || value === '') throw new Fault('usage', `${id} needs a ${name} that is not empty`);
    // A URL parser would take these for steps up and down.
    return /^\.\.?$/.test(value) ? value.replaceAll('.', '%2E') : encodeURIComponent(value);
  });
}

function queryText(query: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const pairs = given.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return pairs.length > 0 ? `?${pairs.join('&')}` : '';
}
