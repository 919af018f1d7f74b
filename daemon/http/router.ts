/**
 * Finds the route of a request by method and path. Static segments win over parameters, and each segment is
 * percent-decoded once.
 */
import { API_BASE } from '../../src/contract/contract.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';

interface Found<T> {
  readonly endpoint: T;
  /** Percent-decoded path parameters, by name. */
  readonly params: Readonly<Record<string, string>>;
}

interface Place<T> {
  readonly names: readonly string[];
  readonly endpoint: T;
}

interface Node<T> {
  readonly next: Map<string, Node<T>>;
  /** Child for a segment that is a parameter. */
  any: Node<T> | null;
  readonly byMethod: Map<string, Place<T>>;
}

const newNode = <T>(): Node<T> => ({ next: new Map(), any: null, byMethod: new Map() });

export class Router<T> {
  private readonly root = newNode<T>();

  /** Adds a route. Throws for a second route of the same method and path. */
  add(route: RouteSpec, endpoint: T): void {
    const names: string[] = [];
    let node = this.root;
    for (const segment of segmentsOf(API_BASE + route.path)) {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1];
      if (name === undefined) {
        const next = node.next.get(segment) ?? newNode<T>();
        node.next.set(segment, next);
        node = next;
      } else {
        names.push(name);
        node.any ??= newNode<T>();
        node = node.any;
      }
    }
    for (const method of methodsOf(route)) {
      if (node.byMethod.has(method)) throw new Error(`two routes are ${method} ${route.path}`);
      node.byMethod.set(method, { names, endpoint });
    }
  }

  /**
   * Returns the endpoint of a request. Throws `not_found`, `method_not_allowed` with the methods of the path, or
   * `bad_request` for invalid percent-encoding.
   * @param url as in the request line
   */
  find(method: string, url: string): Found<T> {
    const path = pathOf(url);
    const segments = segmentsOf(path).map(decode);
    const found = search(this.root, { method, segments }, 0, []);
    if (found !== null) return found;
    const allowed = methodsAt(this.root, segments, 0);
    throw allowed.length === 0 ? notFound(path) : methodNotAllowed(method, path, [...new Set(allowed)]);
  }
}

interface Wanted {
  readonly method: string;
  readonly segments: readonly string[];
}

/** Searches below `node`, from the segment `at` on; `values` are those of the parameters before it. */
function search<T>(node: Node<T>, wanted: Wanted, at: number, values: readonly string[]): Found<T> | null {
  const segment = wanted.segments[at];
  if (segment === undefined) {
    const place = node.byMethod.get(wanted.method);
    return place === undefined ? null : { endpoint: place.endpoint, params: paramsOf(place.names, values) };
  }
  const next = node.next.get(segment);
  const found = next === undefined ? null : search(next, wanted, at + 1, values);
  if (found !== null || node.any === null) return found;
  return search(node.any, wanted, at + 1, [...values, segment]);
}

const paramsOf = (names: readonly string[], values: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']));

/** Returns the methods of every route that the path matches. */
function methodsAt<T>(node: Node<T>, segments: readonly string[], at: number): readonly string[] {
  const segment = segments[at];
  if (segment === undefined) return [...node.byMethod.keys()];
  const next = node.next.get(segment);
  return [next, node.any ?? undefined].flatMap((child) =>
    child === undefined ? [] : methodsAt(child, segments, at + 1),
  );
}

/** Returns the methods of a route; `HEAD` goes with `GET`. */
const methodsOf = ({ method }: RouteSpec): readonly string[] => (method === 'GET' ? ['GET', 'HEAD'] : [method]);

/** Drops scheme and host of the absolute form (RFC 9112, section 3.2.2), the query and a fragment. */
const pathOf = (url: string): string =>
  (url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '')).split(/[?#]/)[0] ?? '';

const segmentsOf = (path: string): readonly string[] => path.split('/');

function decode(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw new Fault('bad_request', 'the path is not valid percent-encoding', { cause });
  }
}

const notFound = (path: string): Fault =>
  new Fault('not_found', `there is nothing at ${path}`, { hint: `GET ${API_BASE}/openapi.json tells what there is` });

const methodNotAllowed = (method: string, path: string, allow: readonly string[]): Fault =>
  new Fault('method_not_allowed', `${method} does not work on ${path}`, {
    hint: `use ${allow.join(' or ')}`,
    data: { allow: [...allow] },
  });
