import { describe, expect, it } from 'vitest';
import { send, startTiny, tlsFiles } from '../support/http.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const ITEM = '/api/v1/items/a';

describe('JSON bodies', () => {
  it('reach the handler as they were sent', async () => {
    const api = await startTiny();
    const body = { size: 3, note: 'grüße \u0000 "', tags: { a: [1, { b: null }] } };
    expect((await send(api, 'PUT', ITEM, { body })).json.body).toEqual(body);
    for (const type of [
      'application/json',
      'Application/JSON; charset=UTF-8',
      'application/json;charset="utf-8"; x=y',
    ]) {
      const sent = await send(api, 'PUT', ITEM, { body: '{"size":1}', headers: { 'content-type': type } });
      expect(sent.status, type).toBe(200);
    }
    const withMark = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('{"size":1}')]);
    expect((await send(api, 'PUT', ITEM, { body: withMark, headers: JSON_TYPE })).status).toBe(200);
  });

  it.each([
    ['plain HTTP', null],
    ['TLS', tlsFiles()],
  ])('reach the handler over %s when their request asks for a protocol that is not spoken', async (_, tls) => {
    const streams = { open: () => expect.unreachable('this is no stream'), leave: () => undefined, size: 0 };
    const api = await startTiny({ tls, streams });
    const asking = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' };
    const body = { size: 3, note: 'x'.repeat(100_000) };
    expect((await send(api, 'PUT', ITEM, { body, headers: asking })).json.body).toEqual(body);
    const inPieces = { ...asking, 'transfer-encoding': 'chunked' };
    expect((await send(api, 'PUT', ITEM, { body, headers: inPieces })).json.body).toEqual(body);
    expect((await send(api, 'GET', ITEM, { headers: asking })).json.name).toBe('a');
  });

  it('lose optional members that are null, but not in free-form maps', async () => {
    const api = await startTiny();
    const body = { size: 1, note: null, tags: { a: null }, parts: [{ id: 'x', label: null }] };
    expect((await send(api, 'PUT', ITEM, { body })).json.body).toEqual({
      size: 1,
      tags: { a: null },
      parts: [{ id: 'x' }],
    });
    expect((await send(api, 'PUT', ITEM, { body: { size: null } })).json.errors).toEqual([
      { path: '/size', message: 'must be integer' },
    ]);
  });

  it('are refused with every mistake at once', async () => {
    const api = await startTiny();
    const body = { size: -1, note: 5, extra: true, parts: [{ label: 2, more: 1 }], 'a/b~c': 1 };
    const { json } = await send(api, 'PUT', ITEM, { body });
    expect(json).toMatchObject({ status: 400, code: 'invalid_body' });
    expect(json.errors).toEqual(
      expect.arrayContaining([
        { path: '/size', message: 'must be >= 0' },
        { path: '/note', message: 'must be string' },
        { path: '/extra', message: 'unknown key "extra"' },
        { path: '/a~1b~0c', message: 'unknown key "a/b~c"' },
        { path: '/parts/0/id', message: '"id" is required' },
        { path: '/parts/0/label', message: 'must be string' },
        { path: '/parts/0/more', message: 'unknown key "more"' },
      ]),
    );
    expect(json.errors).toHaveLength(7);
    expect(json.detail).toContain('4 more');
  });

  it.each([
    ['text', 'hello'],
    ['half an object', '{"size":1'],
    ['two objects', '{"size":1}{"size":2}'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a string', '"x"'],
    ['NaN', '{"size":NaN}'],
    ['a comment', '{"size":1/**/}'],
    ['too large a number', '{"size":1e400}'],
    ['UTF-8 that is none', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ['UTF-16', Buffer.from('{"size":1}', 'utf16le')],
    ['only space', ' \n '],
    ['a prototype', '{"size":1,"tags":{"__proto__":{"x":1}}}'],
    ['a prototype in disguise', '{"size":1,"tags":{"\\u005f_proto__":{"x":1}}}'],
    ['a constructor', '{"size":1,"tags":{"constructor":{"prototype":{"x":1}}}}'],
    ['too much depth', `{"size":1,"tags":{"a":${'['.repeat(64)}${']'.repeat(64)}}}`],
  ])('are refused when they are %s', async (_, body) => {
    const api = await startTiny();
    const { json } = await send(api, 'PUT', ITEM, { body, headers: JSON_TYPE });
    expect(json).toMatchObject({ status: 400, code: 'invalid_body' });
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  it('may have keys that only look dangerous', async () => {
    const api = await startTiny();
    const body = '{"size":1,"note":"__proto__ \\u005b[[[","tags":{"constructor":"x","prototype":{"a":1}}}';
    const { json } = await send(api, 'PUT', ITEM, { body, headers: JSON_TYPE });
    expect(json.body.tags).toEqual({ constructor: 'x', prototype: { a: 1 } });
  });

  it('do not bring the server down by depth', async () => {
    const api = await startTiny();
    for (const body of [
      '['.repeat(2_000_000),
      '{"a":'.repeat(300_000),
      `{"size":1,"tags":${'[{"x":'.repeat(200_000)}`,
    ]) {
      expect((await send(api, 'PUT', ITEM, { body, headers: JSON_TYPE })).json.code).toBe('invalid_body');
    }
    expect((await send(api, 'GET', '/api/v1/ping')).status).toBe(200);
  });

  it('are refused for very many members before they are parsed, and name the first few hundred unknown keys', async () => {
    const api = await startTiny();
    const body = (keys: number) => Object.fromEntries(Array.from({ length: keys }, (_, at) => [`k${at}`, 1]));
    const many = await send(api, 'PUT', ITEM, { body: body(100_000) });
    expect(many.json).toMatchObject({ code: 'invalid_body', detail: 'the body has more than 10000 members' });
    const put = await send(api, 'PUT', ITEM, { body: { size: 1, ...body(9_000) } });
    const run = await send(api, 'POST', '/api/v1/run', { body: body(9_000) });
    const removed = await send(api, 'DELETE', ITEM, { token: 'admin', body: body(9_000) });
    for (const { json } of [put, run, removed]) {
      expect(json.code).toBe('invalid_body');
      expect(json.errors).toHaveLength(256);
    }
  });

  it('do not echo what they held', async () => {
    const api = await startTiny();
    for (const body of ['{"size":1,"value":"hunter2"', '{"value": hunter2}', 'hunter2']) {
      expect((await send(api, 'PUT', ITEM, { body, headers: JSON_TYPE })).text).not.toContain('hunter2');
    }
  });
});

describe('the type of a body', () => {
  it('has to be JSON', async () => {
    const api = await startTiny();
    for (const type of [
      undefined,
      '',
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      'application/json; charset=latin1',
      'garbage',
      'multipart/form-data; boundary=x',
    ]) {
      const headers = type === undefined ? {} : { 'content-type': type };
      const { json } = await send(api, 'PUT', ITEM, { body: '{"size":1}', headers });
      expect(json, String(type)).toMatchObject({ status: 415, code: 'unsupported_media_type' });
    }
    const zipped = await send(api, 'PUT', ITEM, { body: 'x', headers: { ...JSON_TYPE, 'content-encoding': 'gzip' } });
    expect(zipped.json.code).toBe('unsupported_media_type');
  });

  it('does not matter for an empty one, which is enough where nothing is required', async () => {
    const api = await startTiny();
    for (const type of [
      undefined,
      '',
      'text/plain',
      'garbage',
      'application/json',
      'application/x-www-form-urlencoded',
    ]) {
      const headers = type === undefined ? {} : { 'content-type': type };
      expect((await send(api, 'POST', '/api/v1/run', { headers })).json, String(type)).toEqual({
        name: 'nobody',
        size: 1,
      });
      expect((await send(api, 'DELETE', ITEM, { token: 'admin', headers })).status, String(type)).toBe(204);
      const required = await send(api, 'PUT', ITEM, { headers });
      expect(required.json, String(type)).toMatchObject({ status: 400, code: 'invalid_body' });
    }
    const chunked = { 'transfer-encoding': 'chunked' };
    expect((await send(api, 'POST', '/api/v1/run', { headers: chunked })).status).toBe(200);
  });
});

describe('routes without a body', () => {
  it('take an empty object and nothing else', async () => {
    const api = await startTiny();
    const remove = (body: unknown) => send(api, 'DELETE', ITEM, { token: 'admin', body, headers: JSON_TYPE });
    expect((await remove({})).status).toBe(204);
    expect((await remove({ force: true })).json.errors).toEqual([{ path: '/force', message: 'unknown key "force"' }]);
    expect((await remove('[]')).json.code).toBe('invalid_body');
    expect((await send(api, 'GET', '/api/v1/items', { body: {} })).json.code).toBe('invalid_body');
  });
});
