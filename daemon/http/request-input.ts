/** What a request brings: path parameters, query and body, each read by its route's schema. */
import type { FastifyRequest } from 'fastify';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';
import type { HttpLimits } from './http-limits.js';
import { paramsChecker } from './path-params.js';
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
