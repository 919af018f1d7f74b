/** Which methods a path has, for 405 and its `Allow`. */
import { API_BASE } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';

/** The methods of all routes at this path, `HEAD` with `GET`; none when the path is unknown. */
export function allowedMethods(routes: readonly RouteSpec[], path: string): readonly string[] {
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
