/** What to say about a path and method that no route has: 404, or 405 with what the path does have. */
import { API_BASE } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';

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
