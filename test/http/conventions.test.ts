import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../src/contract/openapi.js';
import { Fault } from '../../src/kernel/fault.js';
import { isUlid } from '../../src/kernel/ids.js';
import { send, startTiny, TINY, tlsFiles } from '../support/http.js';

describe('every answer', () => {
  it('carries the id of the request, is not cached and is open to no other site', async () => {
    const api = await startTiny();
    for (const [method, path, status] of [
      ['GET', '/api/v1/ping', 200],
      ['GET', '/api/v1/nowhere', 404],
      ['POST', '/api/v1/ping', 405],
      ['GET', '/api/v1/items?x=1', 400],
      ['GET', '/api/v1/items/%zz', 400],
      ['DELETE', '/api/v1/items/a', 403],
    ] as const) {
      const answer = await send(api, method, path, { headers: { 'x-request-id': 'mine' } });
      expect(answer.status, path).toBe(status);
      expect(isUlid(String(answer.headers['x-request-id'])), path).toBe(true);
      expect(answer.headers['cache-control'], path).toBe('no-store');
      expect(answer.headers['x-content-type-options'], path).toBe('nosniff');
      expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
      if (status >= 400) {
        expect(answer.headers['content-type'], path).toBe('application/problem+json; charset=utf-8');
        expect(answer.json).toMatchObject({ status, request_id: answer.headers['x-request-id'] });
        expect(answer.json.type).toBe(`urn:orch:problem:${answer.json.code}`);
        expect(answer.json.title).not.toBe('');
        expect(answer.json.detail).not.toBe('');
      } else expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    }
  });

  it('of a deprecated operation says so, and until when it stays', async () => {
    const api = await startTiny();
    for (const token of ['viewer', null]) {
      const { headers } = await send(api, 'GET', '/api/v1/dump', { token });
      expect(headers).toMatchObject({ deprecation: '@1772323200', sunset: 'Tue, 01 Dec 2026 00:00:00 GMT' });
    }
    expect((await send(api, 'GET', '/api/v1/ping')).headers).not.toHaveProperty('deprecation');
    const { paths } = JSON.parse(JSON.stringify(openApiDocument(TINY, { version: '1.0.0' })));
    expect(paths['/api/v1/dump'].get).toMatchObject({
      deprecated: true,
      description: expect.stringContaining(
        'Deprecated since 2026-03-01; it stays until 2026-12-01 at least. Use `listItems`.',
      ),
      responses: { 200: { headers: { Deprecation: {}, Sunset: {} } }, 404: { $ref: expect.any(String) } },
    });
    expect(paths['/api/v1/items'].get).not.toHaveProperty('deprecated');
  });

  it('comes over TLS 1.2 and up with the fingerprint that the server tells', async () => {
    const api = await startTiny({ tls: tlsFiles() });
    expect(api.fingerprint).toMatch(/^[0-9a-f]{64}$/);
    expect((await send(api, 'GET', '/api/v1/ping')).json.pong).toBe(true);
  });

  it('to HEAD is that to GET without the body', async () => {
    const api = await startTiny();
    const get = await send(api, 'GET', '/api/v1/items/a');
    const head = await send(api, 'HEAD', '/api/v1/items/a', { headers: { accept: 'application/x-ndjson' } });
    expect(head.status).toBe(200);
    expect(head.text).toBe('');
    expect(head.headers['content-length']).toBe(get.headers['content-length']);
  });
});

describe('paths and methods', () => {
  it('tells an unknown path from a wrong method', async () => {
    const api = await startTiny();
    const nowhere = await send(api, 'GET', '/api/v1/nowhere');
    expect(nowhere.json).toMatchObject({ status: 404, code: 'not_found' });
    for (const path of ['/', '/api/v1', '/api/v1/ping/', '/API/v1/ping', '/api/v1//ping', '/api/v2/ping']) {
      expect((await send(api, 'GET', path)).status, path).toBe(404);
    }
    const wrong = await send(api, 'PATCH', '/api/v1/items/a', { body: { size: 1 } });
    expect(wrong.json).toMatchObject({ status: 405, code: 'method_not_allowed' });
    expect(wrong.headers.allow).toBe('GET, HEAD, PUT, DELETE');
    for (const method of ['OPTIONS', 'TRACE', 'PROPFIND', 'QUERY']) {
      expect((await send(api, method, '/api/v1/ping')).headers.allow, method).toBe('GET, HEAD');
    }
  });

  it('decodes parameters once', async () => {
    const api = await startTiny();
    expect((await send(api, 'GET', '/api/v1/items/a%20b%C3%BC')).json.name).toBe('a bü');
    expect((await send(api, 'GET', '/api/v1/items/a%2541')).json.name).toBe('a%41');
    expect((await send(api, 'GET', '/api/v1/items/..')).json.name).toBe('..');
  });

  it('refuses parameters that could be taken for something else', async () => {
    const api = await startTiny();
    for (const name of ['a%00b', 'a%2Fb', '..%2f..%2fetc', 'a%5Cb', 'a%0Ab', 'a%7F']) {
      const answer = await send(api, 'GET', `/api/v1/items/${name}`);
      expect(answer.json, name).toMatchObject({ status: 400, code: 'invalid_path', errors: [{ path: '/name' }] });
    }
    for (const name of ['%', '%zz', '%C3%28', '%ff']) {
      expect((await send(api, 'GET', `/api/v1/items/${name}`)).status, name).toBe(400);
    }
    const long = await send(api, 'GET', `/api/v1/items/${'x'.repeat(129)}`);
    expect(long.json.code).toBe('invalid_path');
    expect((await send(api, 'GET', '/api/v1/items/')).json.code).toBe('invalid_path');
  });
});

describe('queries', () => {
  it('are read by their schema', async () => {
    const api = await startTiny();
    const query = async (text: string) => (await send(api, 'GET', `/api/v1/items${text}`)).json.query;
    expect(await query('')).toEqual({});
    expect(await query('?limit=20&deep=true&ratio=0.5&sort=up&filter=a%3Db+c%2Bd')).toEqual({
      limit: 20,
      deep: true,
      ratio: 0.5,
      sort: 'up',
      filter: 'a=b c+d',
    });
    expect(await query('?deep=false&filter=')).toEqual({ deep: false, filter: '' });
    expect(await query('?filter=5')).toEqual({ filter: '5' });
    expect(await query(`?limit=${'9'.repeat(40)}`)).toEqual({ limit: Number.MAX_SAFE_INTEGER });
  });

  it.each([
    ['?limit=0', '/limit'],
    ['?limit=-5', '/limit'],
    ['?limit=ten', '/limit'],
    ['?limit=1.5', '/limit'],
    ['?limit=1e3', '/limit'],
    ['?limit=', '/limit'],
    ['?limit=0x10', '/limit'],
    ['?deep=yes', '/deep'],
    ['?deep', '/deep'],
    ['?sort=sideways', '/sort'],
    ['?limit=1&limit=2', '/limit'],
    ['?limits=1', '/limits'],
    ['?__proto__=1', '/__proto__'],
    ['?constructor=1', '/constructor'],
    ['?filter=%zz', '/filter=%zz'],
    ['?limit[]=1', '/limit[]'],
    ['?=1', '/'],
  ])('refuse %s', async (text, path) => {
    const api = await startTiny();
    const answer = await send(api, 'GET', `/api/v1/items${text}`);
    expect(answer.json).toMatchObject({ status: 400, code: 'invalid_query' });
    expect(answer.json.errors.map((error: { path: string }) => error.path)).toEqual([path]);
    expect(answer.json.detail).toContain(path.slice(1));
  });

  it('tell every mistake at once, also where no query is taken', async () => {
    const api = await startTiny();
    const many = await send(api, 'GET', '/api/v1/items?a=1&b=2&c=3&d=4');
    expect(many.json.errors).toHaveLength(4);
    expect(many.json.detail).toContain('1 more');
    expect((await send(api, 'GET', '/api/v1/ping?x=1', { token: null })).json.code).toBe('invalid_query');
    expect((await send(api, 'GET', '/api/v1/ping?', { token: null })).status).toBe(200);
    expect((await send(api, 'POST', '/api/v1/run?force=1', { body: {} })).json.code).toBe('invalid_query');
  });
});

describe('access', () => {
  it('needs a token of the right form that is known', async () => {
    const api = await startTiny();
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      'Basic YTpi',
      'Bearer a b',
      'operator',
      'Bearer gone',
    ]) {
      const headers = authorization === undefined ? {} : { authorization };
      const answer = await send(api, 'GET', '/api/v1/items', { token: null, headers });
      expect(answer.json, String(authorization)).toMatchObject({ status: 401, code: 'unauthenticated' });
      expect(answer.headers['www-authenticate']).toBe('Bearer');
    }
    expect(
      (await send(api, 'GET', '/api/v1/items', { token: null, headers: { authorization: 'bearer  viewer' } })).status,
    ).toBe(200);
  });

  it('is checked before anything of the request is looked at', async () => {
    const api = await startTiny({ limits: { bodyBytes: 1024 } });
    const body = 'x'.repeat(4096);
    expect((await send(api, 'PUT', '/api/v1/items/a?x=1', { token: null, body })).status).toBe(401);
    expect((await send(api, 'PUT', '/api/v1/items/a?x=1', { token: 'viewer', body })).json.code).toBe('role_forbidden');
    expect((await send(api, 'DELETE', '/api/v1/items/%00', { token: 'operator' })).json.code).toBe('admin_required');
    expect((await send(api, 'DELETE', '/api/v1/items/a', { token: 'admin' })).status).toBe(204);
  });

  it('is denied to pages of other sites', async () => {
    const api = await startTiny();
    const { port } = api.address();
    const from = (origin: string, host = `127.0.0.1:${port}`) =>
      send(api, 'GET', '/api/v1/ping', { headers: { origin, host } });
    for (const origin of [
      'https://evil.example',
      'null',
      `https://127.0.0.1:${port}`,
      'http://127.0.0.1',
      'nonsense',
      '',
    ]) {
      expect((await from(origin)).json, origin).toMatchObject({ status: 403, code: 'origin_forbidden' });
    }
    expect((await from(`http://127.0.0.1:${port}`)).status).toBe(200);
    expect((await from('http://orch.example', 'orch.example')).status).toBe(200);
    expect((await from('http://orch.example', 'orch.example:80')).status).toBe(200);
  });
});

describe('the address of the client', () => {
  it('is that of the peer unless a proxy is trusted', async () => {
    const headers = { 'x-forwarded-for': '198.51.100.1, 203.0.113.9' };
    const plain = await startTiny();
    expect((await send(plain, 'GET', '/api/v1/ping', { headers })).json.address).toBe('127.0.0.1');
    const proxied = await startTiny({ trustProxyTls: true });
    expect((await send(proxied, 'GET', '/api/v1/ping', { headers })).json.address).toBe('203.0.113.9');
    for (const [forwarded, address] of [
      ['', '127.0.0.1'],
      ['unknown', '127.0.0.1'],
      ['2001:db8::1', '2001:db8::1'],
      ['[2001:db8::1]:4711', '2001:db8::1'],
      ['::ffff:192.0.2.1', '192.0.2.1'],
    ] as const) {
      const sent = await send(proxied, 'GET', '/api/v1/ping', { headers: { 'x-forwarded-for': forwarded } });
      expect(sent.json.address, forwarded).toBe(address);
    }
  });
});

describe('faults of handlers', () => {
  const failing = (error: () => unknown, validateAnswers = true) =>
    startTiny({
      validateAnswers,
      handlers: {
        getItem: async () => {
          throw error();
        },
      },
    });

  it('become problem documents with hint, errors and data', async () => {
    const api = await failing(
      () =>
        new Fault('module_in_use', 'the module is in use', {
          hint: 'remove the assignment first',
          errors: [{ path: '/a', message: 'no', line: 3, column: 4 }],
          data: { by: ['x'], status: 200, code: 'x', type: 'x', request_id: 'x', retry_after: 1.2, errors: 'x' },
        }),
    );
    const { status, headers, json } = await send(api, 'GET', '/api/v1/items/a');
    expect(status).toBe(409);
    expect(headers['retry-after']).toBe('2');
    expect(json).toEqual({
      type: 'urn:orch:problem:module_in_use',
      title: 'Module in use',
      status: 409,
      detail: 'the module is in use; remove the assignment first',
      code: 'module_in_use',
      request_id: headers['x-request-id'],
      errors: [{ path: '/a', message: 'no', line: 3, column: 4 }],
      by: ['x'],
      retry_after: 2,
    });
  });

  it('of unknown kind tell nothing but the request id, and the log tells the rest', async () => {
    const lines: { message: string; fields: Record<string, unknown> }[] = [];
    const log = (message: string, fields: Record<string, unknown> = {}) => lines.push({ message, fields });
    const logger = { debug: log, info: log, warn: log, error: log, child: () => logger };
    const api = await startTiny({
      logger,
      validateAnswers: false,
      handlers: {
        getItem: async () => {
          throw new TypeError('/var/lib/orch/secret went wrong');
        },
        listItems: async () => {
          throw new Fault('key_unreadable', '/var/lib/orch/identity.key cannot be read');
        },
      },
    });
    for (const path of ['/api/v1/items/a', '/api/v1/items']) {
      const { json, text, headers } = await send(api, 'GET', path);
      expect(json).toMatchObject({ status: 500, code: 'internal', request_id: headers['x-request-id'] });
      expect(text).not.toMatch(/var\/lib|TypeError|\.ts/);
      const line = lines.find(
        ({ message, fields }) => message === 'a request failed' && fields.request_id === json.request_id,
      );
      expect(String(line?.fields.reason) + String(line?.fields.stack)).toMatch(/\/var\/lib\/orch.*\.ts/s);
    }
    const access = lines.filter(({ message }) => message === 'request').map(({ fields }) => fields);
    expect(access[0]).toMatchObject({ method: 'GET', path: '/api/v1/items/a', status: 500, address: '127.0.0.1' });
  });

  it('that the contract does not have are found when answers are checked', async () => {
    const undeclared = () => new Fault('tag_not_found', 'no such tag');
    expect((await send(await failing(undeclared), 'GET', '/api/v1/items/a')).status).toBe(500);
    expect((await send(await failing(undeclared, false), 'GET', '/api/v1/items/a')).status).toBe(404);
  });
});

describe('answers of handlers', () => {
  it('that break the contract are found when they are checked', async () => {
    const wrong = { getItem: async () => ({ status: 200 as const, body: { name: 'a', size: 1, extra: 'x' } }) };
    expect((await send(await startTiny({ handlers: wrong }), 'GET', '/api/v1/items/a')).status).toBe(500);
    const unchecked = await startTiny({ handlers: wrong, validateAnswers: false });
    expect((await send(unchecked, 'GET', '/api/v1/items/a')).status).toBe(200);
  });

  it('keep the headers that they come with', async () => {
    const listItems = async () => ({ status: 200 as const, body: {}, headers: { link: '<x>; rel="next"' } });
    const api = await startTiny({ handlers: { listItems } });
    expect((await send(api, 'GET', '/api/v1/items')).headers.link).toBe('<x>; rel="next"');
  });
});
