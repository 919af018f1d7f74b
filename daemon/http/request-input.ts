/** What a request brings: path parameters, query and body, each read by its route's schema. */
import type { FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import type { HttpLimits } from './api-listener.js';
import { queryOf, queryReader } from './query-string.js';
import { bodyReader } from './request-body.js';

/** Each undefined when the route has none. */
export interface Input {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

const NOTHING = Buffer.alloc(0);

/** Makes the reader of a route's requests, which throws `invalid_path`, `invalid_query`, `invalid_body` and the like. */
export function inputReader(route: RouteSpec, limits: HttpLimits): (request: FastifyRequest) => Input {
  const checkParams = paramsChecker(route.params);
  const readQuery = queryReader(route.query);
  const readBody = bodyReader(route, limits.jsonDepth);
  return ({ raw, headers, params, body, exchange }) => {
    // Fastify does not read the body of a GET.
    if (route.method === 'GET' && announcesBody(headers)) throw new Fault('invalid_body', 'a GET takes no body');
    return {
      params: checkParams(params),
      query: readQuery(queryOf(raw.url ?? '')),
      body: readBody({ bytes: Buffer.isBuffer(body) ? body : NOTHING, headers, contentType: exchange.contentType }),
    };
  };
}

const announcesBody = (headers: FastifyRequest['headers']): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/** Control characters, and what separates the parts of paths: no name of ours has them. */
const FORBIDDEN = /[\u0000-\u001f\u007f-\u009f/\\]/;

/**
 * Makes the checker of a route's parameters, which throws `invalid_path`.
 * @param schema undefined when the route has none
 */
export function paramsChecker(schema: TSchema | undefined): (params: unknown) => unknown {
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
