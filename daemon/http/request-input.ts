/** The input of a request: path parameters, query and body, each parsed by its route's schema. */
import type { IncomingMessage } from 'node:http';
import type { TSchema } from 'typebox';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import type { HttpLimits } from './http-limits.js';
import { queryOf, queryReader } from './query-string.js';
import { bodyReader } from './request-body.js';

/** Each field is undefined when the route has no such input. */
export interface Input {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** A request matched by the router. */
interface RoutedRequest {
  readonly request: IncomingMessage;
  /** Percent-decoded path parameters, by name. */
  readonly params: Readonly<Record<string, string>>;
  /** Body; empty when there was none. */
  readonly body: Buffer;
}

/**
 * Creates the reader of a route's input, which throws `invalid_path`, `invalid_query`, `invalid_body` and the faults
 * of bodies.
 */
export function inputReader(route: RouteSpec, limits: HttpLimits): (routed: RoutedRequest) => Input {
  const checkParams = paramsChecker(route.params);
  const readQuery = queryReader(route.query);
  const readBody = bodyReader(route, limits.jsonDepth);
  return ({ request: { headers, url = '' }, params, body }) => {
    if (route.method === 'GET' && announcesBody(headers)) throw new Fault('invalid_body', 'a GET takes no body');
    return {
      params: checkParams(params),
      query: readQuery(queryOf(url)),
      body: readBody({ bytes: body, headers, contentType: headers['content-type'] }),
    };
  };
}

/** Returns true when the headers announce a body. */
export const announcesBody = (headers: IncomingMessage['headers']): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Control characters and path separators, which no valid name holds. */
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f/\\]/;

/**
 * Creates the check of a route's path parameters, which throws `invalid_path`.
 * @param schema undefined when the route has none
 */
function paramsChecker(schema: TSchema | undefined): (params: unknown) => unknown {
  if (!schema) return () => undefined;
  const check = validator(schema);
  return (params) => {
    const errors = [...check.problems(params), ...forbidden(params)];
    if (errors.length === 0) return params;
    const list = errors.map(({ path, message }) => `${path.slice(1)} ${message}`).join(', ');
    throw new Fault('invalid_path', `the path is not valid: ${list}`, { errors });
  };
}

function forbidden(params: unknown): readonly FaultDetail[] {
  return Object.entries(params ?? {})
    .filter(([, value]) => FORBIDDEN.test(String(value)))
    .map(([name]) => ({ path: `/${name}`, message: 'must not hold slashes or control characters' }));
}
