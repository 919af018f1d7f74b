/** Paths and methods as the router reads them. */
import { describe, expect, it } from 'vitest';
import { Router } from '../../daemon/http/router.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { faultOf } from '../support/identity.js';

const router = new Router<string>();
const ROUTES = [
  ['GET', '/agents'],
  ['GET', '/agents/{node_id}'],
  ['DELETE', '/agents/{node_id}'],
  ['GET', '/agents/{node_id}/tags/{key}'],
  ['POST', '/agents/search'],
  ['GET', '/agents/search/{name}'],
] as const;
for (const [method, path] of ROUTES) {
  router.add({ id: path, method, path } as unknown as RouteSpec, `${method} ${path}`);
}

describe('a router', () => {
  it.each([
    ['GET', '/api/v1/agents', 'GET /agents', {}],
    ['HEAD', '/api/v1/agents?limit=1', 'GET /agents', {}],
    ['GET', '/api/v1/agents/a%2Fb', 'GET /agents/{node_id}', { node_id: 'a/b' }],
    ['GET', '/api/v1/agents/%2500', 'GET /agents/{node_id}', { node_id: '%00' }],
    ['GET', '/api/v1/agents/search', 'GET /agents/{node_id}', { node_id: 'search' }],
    ['POST', '/api/v1/agents/search', 'POST /agents/search', {}],
    ['GET', '/api/v1/agents/search/x', 'GET /agents/search/{name}', { name: 'x' }],
    ['GET', '/api/v1/agents/1/tags/a+b', 'GET /agents/{node_id}/tags/{key}', { node_id: '1', key: 'a+b' }],
    ['GET', '/api/v1/%61gents', 'GET /agents', {}],
    ['GET', 'https://orch.example:4748/api/v1/agents', 'GET /agents', {}],
    ['GET', '/api/v1/agents/__proto__', 'GET /agents/{node_id}', { node_id: '__proto__' }],
  ])('finds %s %s', (method, url, endpoint, params) => {
    expect(router.find(method, url)).toEqual({ endpoint, params });
  });

  it.each([
    ['GET', '/'],
    ['GET', '/api/v1'],
    ['GET', '/api/v1/Agents'],
    ['GET', '//api/v1/agents'],
    ['GET', '/api/v1/agents/1/tags'],
    ['OPTIONS', '*'],
  ])('has nothing at %s %s', (method, url) => {
    expect(faultOf(() => router.find(method, url)).code).toBe('not_found');
  });

  it.each([
    ['PUT', '/api/v1/agents', ['GET', 'HEAD']],
    ['POST', '/api/v1/agents/1', ['GET', 'HEAD', 'DELETE']],
    ['DELETE', '/api/v1/agents/search/x', ['GET', 'HEAD']],
  ])('names the methods of a path that has no %s: %s', (method, url, allow) => {
    expect(() => router.find(method, url)).toThrow(
      expect.objectContaining({ code: 'method_not_allowed', data: { allow } }),
    );
  });

  it('refuses a path that is not valid percent-encoding', () => {
    expect(faultOf(() => router.find('GET', '/api/v1/agents/%zz')).code).toBe('bad_request');
    expect(faultOf(() => router.find('GET', '/api/v1/agents/%ff')).code).toBe('bad_request');
  });

  it('takes no two routes of one method and path', () => {
    expect(() => router.add({ id: 'x', method: 'GET', path: '/agents/{other}' } as unknown as RouteSpec, 'x')).toThrow(
      'two routes are GET /agents/{other}',
    );
  });
});
