/** An answer in its wire form, and the conversion of handlers' answers and faults into it. */
import { finished, Readable } from 'node:stream';
import type { TSchema } from 'typebox';
import { API_BASE } from '../../src/contract/contract.js';
import { FAULTS } from '../../src/contract/faults.js';
import { isLocated, type RouteSpec } from '../../src/contract/route.js';
import type { Problem } from '../../src/contract/shapes.js';
import type { FaultCode } from '../../src/kernel/fault.js';
import { Fault, systemCodeOf } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import { type Compressible, StaticText } from './compression.js';
import type { Exchange } from './exchange.js';
import { JsonText } from './handler.js';
import { isGone } from './streams.js';

export interface Rendered extends Compressible {
  /** Streamed body; `payload` is null then. */
  readonly pieces?: Readable;
  /** Faults of the route, which a streamed body may end with. */
  readonly faults?: readonly FaultCode[];
}

interface AnyAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Creates the renderer of a route's answers. Bodies are written with `JSON.stringify`, which is about as fast as code
 * generated from the schema for objects of this size.
 * The renderer throws an Error for an answer outside the contract: always for an unknown status, and with `validate`
 * for a body that does not match the schema.
 */
export function answerRenderer(route: RouteSpec, validate: boolean): (answer: AnyAnswer) => Rendered {
  const checks = new Map(
    Object.entries(route.answers).map(([status, schema]) => [Number(status), schema && validator(schema)]),
  );
  const type = route.mediaType ?? JSON_TYPE;
  return ({ status, body, headers = {} }) => {
    const check = checks.get(status);
    if (check === undefined) throw new Error(`${route.id} answered ${status}, which is not in its contract`);
    if (check === null) return { status, headers, payload: null };
    const typed = { ...headers, ...locationOf(route, status, body), 'content-type': type };
    if (route.mediaType !== undefined && body instanceof Readable) {
      return { status, headers: typed, payload: null, pieces: body, faults: route.faults };
    }
    const fixed = body instanceof StaticText ? { fixed: body } : {};
    const payload = route.mediaType === undefined ? jsonOf(body) : textOf(body);
    if (validate) {
      const [problem] = check.problems(route.mediaType === undefined ? JSON.parse(payload ?? 'null') : payload);
      if (problem)
        throw new Error(`${route.id} answered a body that breaks its contract: ${problem.path} ${problem.message}`);
    }
    return { status, headers: typed, payload, ...fixed };
  };
}

/** Returns the header `Location` of an answer, and none for a route or a status without one. */
function locationOf({ location }: RouteSpec, status: number, body: unknown): Readonly<Record<string, string>> {
  if (location === undefined || !isLocated(status)) return {};
  const members = (body instanceof JsonText ? JSON.parse(body.text) : body) as Readonly<Record<string, unknown>>;
  const path = location.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(members[name])));
  return { location: API_BASE + path };
}

/** Returns a stored answer with the `Location` of the first one, which is not stored. */
export function relocated(route: RouteSpec, rendered: Rendered): Rendered {
  const { status, headers, payload } = rendered;
  if (payload === null || !isLocated(status)) return rendered;
  return { ...rendered, headers: { ...headers, ...locationOf(route, status, new JsonText(payload)) } };
}

const jsonOf = (body: unknown): string =>
  body instanceof JsonText || body instanceof StaticText ? body.text : JSON.stringify(body);

const textOf = (body: unknown): string => (body instanceof StaticText ? body.text : String(body));

/** Creates a check that throws an Error when a line or an event of a stream does not match its schema. */
export function pieceChecker(route: RouteSpec, schema: TSchema | undefined): (piece: unknown) => void {
  const check = schema && validator(schema);
  return (piece) => {
    const [problem] = check?.problems(JSON.parse(JSON.stringify(piece))) ?? [];
    if (problem) throw new Error(`${route.id} streamed what breaks its contract: ${problem.path} ${problem.message}`);
  };
}

/** Returns the problem document of a fault that may be shown. */
export function renderFault(fault: Fault, requestId: string, statuses?: RouteSpec['statuses']): Rendered {
  const headers = { ...problemHeaders(fault), 'content-type': PROBLEM_TYPE };
  const status = statusOf(fault, statuses);
  return { status, headers, payload: JSON.stringify(problemOf(fault, requestId, status)) };
}

/** Media type of faults, which are sent as RFC 9457 problem documents. */
export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

/** Returns the document. Members of the fault's data are added to the standard members and never replace them. */
function problemOf(fault: Fault, requestId: string, status: number): Problem {
  const { title } = FAULTS[fault.code];
  const retryAfter = retryAfterOf(fault);
  const standard: Problem = {
    type: `urn:orch:problem:${fault.code}`,
    title,
    status,
    detail: fault.hint ? `${fault.message}; ${fault.hint}` : fault.message,
    code: fault.code,
    request_id: requestId,
    ...(retryAfter === null ? {} : { retry_after: retryAfter }),
    ...(fault.errors ? { errors: [...fault.errors] } : {}),
  };
  return Object.fromEntries([
    ...Object.entries({ ...fault.data, errors: undefined }),
    ...Object.entries(standard),
  ]) as Problem;
}

/** Returns the status of a fault, which the route may override. */
const statusOf = (fault: Fault, statuses: RouteSpec['statuses'] = {}): number =>
  statuses[fault.code] ?? FAULTS[fault.code].status;

/** Returns the whole seconds after which another attempt makes sense; null where waiting does not help, or the time is unknown. */
function retryAfterOf({ code, data }: Fault): number | null {
  const seconds = data?.retry_after ?? FAULTS[code].retryAfter;
  return typeof seconds === 'number' ? Math.max(1, Math.ceil(seconds)) : null;
}

/** Returns the headers that accompany a fault. */
function problemHeaders(fault: Fault): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  if (FAULTS[fault.code].status === 401) headers['www-authenticate'] = 'Bearer';
  const retryAfter = retryAfterOf(fault);
  if (retryAfter !== null) headers['retry-after'] = String(retryAfter);
  const { allow } = fault.data ?? {};
  if (fault.code === 'method_not_allowed' && Array.isArray(allow)) headers.allow = allow.join(', ');
  return headers;
}

/** Returns true when the client disconnected while sending. */
const isHangUp = (error: unknown): boolean => ['ECONNRESET', 'EPIPE'].includes(systemCodeOf(error) ?? '');

/**
 * Converts an error to a fault that may be shown. Faults without an HTTP status and all other errors become
 * `internal`, because their messages could reveal paths and keys of this machine.
 * @param declared codes of status 500 in the route's contract
 */
export function faultOfError(error: unknown, declared: readonly FaultCode[] = []): Fault {
  if (error instanceof Fault) {
    const isShowable = FAULTS[error.code].status !== 500 || error.code === 'internal' || declared.includes(error.code);
    return isShowable ? error : internal(error);
  }
  if (isHangUp(error)) return new Fault('bad_request', 'the connection broke', { cause: error });
  return internal(error);
}

const internal = (cause: unknown): Fault =>
  new Fault('internal', 'something went wrong in the orchestrator', {
    hint: 'its log tells more under the request id',
    cause,
  });

/**
 * Sends a whole answer. A streamed body that fails before its first byte becomes its fault, or `internal`; later the connection
 * is closed.
 */
export function sendRendered(
  { request, response, requestId }: Pick<Exchange, 'request' | 'response' | 'requestId'>,
  { status, headers, payload, encoded, pieces, faults }: Rendered,
): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (pieces === undefined || request.method === 'HEAD') {
    const isBodiless = status === 204 || status === 304;
    const body = encoded ?? payload ?? '';
    if (!isBodiless && pieces === undefined) response.setHeader('content-length', Buffer.byteLength(body));
    response.end(body);
    return;
  }
  response.once('close', () => pieces.destroy());
  // `finished` also reports a source that failed before this line; its `error` event has been emitted already.
  finished(pieces, { writable: false }, (error) => {
    if (!error || isGone(response)) return;
    if (response.headersSent) response.destroy();
    else {
      for (const name of Object.keys(headers)) response.removeHeader(name);
      sendRendered({ request, response, requestId }, renderFault(faultOfError(error, faults), requestId));
    }
  });
  pieces.pipe(response);
}
