/** What every request has to pass before its route is looked at. */
import type { IncomingMessage } from 'node:http';
import { API_BASE } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';

export interface GateOptions {
  readonly urlBytes: number;
  /** Whether clients see TLS, here or at the proxy. */
  readonly isTls: boolean;
}

/** The fault `url_too_long`, `bad_request` or `origin_forbidden`, or undefined when the request may pass. */
export function gateRefusal(request: IncomingMessage, { urlBytes, isTls }: GateOptions): Fault | undefined {
  if ((request.url?.length ?? 0) > urlBytes) {
    return new Fault('url_too_long', `the URL is longer than ${urlBytes} bytes`, { hint: 'shorten the query' });
  }
  const { host, origin } = request.headers;
  if (host === undefined && request.httpVersion === '1.1')
    return new Fault('bad_request', 'the Host header is missing');
  if (origin === undefined || isSameOrigin(origin, `${isTls ? 'https' : 'http'}://${host ?? ''}`)) return undefined;
  return new Fault('origin_forbidden', `pages of ${JSON.stringify(origin)} may not use this API`, {
    hint: 'call it from a program, without an Origin header',
  });
}

function isSameOrigin(origin: string, own: string): boolean {
  if (!URL.canParse(origin) || !URL.canParse(own)) return false;
  return new URL(origin).origin !== 'null' && new URL(origin).origin === new URL(own).origin;
}

/** The fault `not_found` or `method_not_allowed`. */
export function noSuchRoute(routes: readonly RouteSpec[], method: string, url: string): Fault {
  const path = url.split('?')[0] ?? '';
  const allow = allowedMethods(routes, path);
  if (allow.length === 0) {
    const hint = `GET ${API_BASE}/openapi.json tells what there is`;
    return new Fault('not_found', `there is nothing at ${path}`, { hint });
  }
  const hint = `use ${allow.join(' or ')}`;
  return new Fault('method_not_allowed', `${method} does not work on ${path}`, { hint, data: { allow } });
}

/** The methods of all routes at this path, `HEAD` with `GET`; none when the path is unknown. */
function allowedMethods(routes: readonly RouteSpec[], path: string): readonly string[] {
  const methods = routes.filter((route) => matches(API_BASE + route.path, path)).map(({ method }) => method);
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))];
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split('/');
  const given = path.split('/');
  return (
    wanted.length === given.length &&
    wanted.every((segment, at) => (segment.startsWith('{') ? given[at] !== '' : segment === given[at]))
  );
}
