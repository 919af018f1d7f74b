/** Builds requests of routes, and reads answers into bodies or faults. */
import { Fault, type FaultDetail, isFault, isFaultCode } from '../kernel/fault.js';
import { VERSION } from '../kernel/version.js';
import { BASE, type RouteCall } from './calls.js';
import { type TransportAnswer, type TransportRequest, textOf } from './transport.js';
import { notOurs } from './unreachable.js';

/** Input of any route; `CallInput` has the type for each route. */
export interface AnyInput {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  readonly idempotencyKey?: string | undefined;
  readonly ifMatch?: string | undefined;
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
      ...(input.ifMatch === undefined ? {} : { 'if-match': input.ifMatch }),
    },
    body,
    signal: input.signal,
  };
}

function fillPath({ id, path }: RouteCall, params: Readonly<Record<string, unknown>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    // An empty segment would make another path.
    if (typeof value !== 'string' || value === '') throw new Fault('usage', `${id} needs a ${name} that is not empty`);
    // A URL parser would resolve `.` and `..` as relative segments.
    return /^\.\.?$/.test(value) ? value.replaceAll('.', '%2E') : encodeURIComponent(value);
  });
}

function queryText(query: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const pairs = given.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return pairs.length > 0 ? `?${pairs.join('&')}` : '';
}

export const acceptHeaders: Readonly<Record<string, string>> = {
  accept: 'application/json',
  'user-agent': `orch/${VERSION}`,
};

export const jsonHeaders: Readonly<Record<string, string>> = { ...acceptHeaders, 'content-type': 'application/json' };

export const isSuccess = ({ status }: TransportAnswer): boolean => status >= 200 && status < 300;

export const mediaTypeOf = ({ headers }: TransportAnswer): string =>
  (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

/** Returns JSON as a value, other media as text, and undefined without a body. Throws the fault of an unsuccessful answer. */
export async function readSuccess(answer: TransportAnswer, url: URL): Promise<unknown> {
  if (!isSuccess(answer)) throw await readFailure(answer, url);
  const text = await textOf(answer);
  if (text === '') return undefined;
  if (mediaTypeOf(answer) !== 'application/json') return text;
  const value = parseJson(text);
  if (value === undefined) throw notOurs(url, answer.status, 'with a body that is not JSON');
  return value;
}

/** Returns the fault of an unsuccessful answer. */
export async function readFailure(answer: TransportAnswer, url: URL): Promise<Error> {
  try {
    const text = await textOf(answer);
    return faultOfProblem(parseJson(text)) ?? notOurs(url, answer.status, `with ${mediaTypeOf(answer) || 'nothing'}`);
  } catch (error) {
    if (isFault(error)) return error;
    throw error;
  }
}

/** Returns undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

type Members = Readonly<Record<string, unknown>>;

const STANDARD: ReadonlySet<string> = new Set(['type', 'detail', 'code', 'errors']);

/**
 * Returns the fault of a problem document, or null for another value. An unknown code becomes `internal` with the server's
 * message and stays in `data.code`. `data` has the other members, including `status` and `request_id`.
 */
export function faultOfProblem(value: unknown): Fault | null {
  if (!isObject(value) || typeof value.code !== 'string' || typeof value.status !== 'number') return null;
  const { code, detail, title, errors } = value;
  const others = Object.fromEntries(Object.entries(value).filter(([name]) => !STANDARD.has(name)));
  const message = [detail, title, code].find((text) => typeof text === 'string' && text !== '');
  const details = Array.isArray(errors) ? errors.filter(isDetail) : [];
  return new Fault(isFaultCode(code) ? code : 'internal', String(message), {
    data: isFaultCode(code) ? others : { ...others, code },
    ...(details.length > 0 ? { errors: details } : {}),
  });
}

/** Longest time that a client waits before it tries again, in milliseconds. */
const LONGEST_WAIT_MS = 3_600_000;

/** Returns the milliseconds after which the orchestrator advises another attempt (`Retry-After`); `standard` without advice. */
export function retryAfterMs(error: unknown, standard: number): number {
  const seconds = isFault(error) ? error.data?.retry_after : undefined;
  if (typeof seconds !== 'number' || !(seconds > 0)) return standard;
  return Math.min(seconds * 1000, LONGEST_WAIT_MS);
}

function isDetail(value: unknown): value is FaultDetail {
  return isObject(value) && typeof value.path === 'string' && typeof value.message === 'string';
}

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
