/** Compressed answers: for clients that accept them, whole, and never where they would tell of a secret. */
import { request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { ApiServer } from '../../daemon/http/api-server.js';
import { acceptsGzip, StaticText } from '../../daemon/http/compression.js';
import type { HandlersFor } from '../../daemon/http/handler.js';
import { statusHandlers } from '../../daemon/status.js';
import { CONTRACT } from '../../src/contract/contract.js';
import { openApiDocument } from '../../src/contract/openapi.js';
import { Fault } from '../../src/kernel/fault.js';
import { startTiny, type Tiny } from '../support/http.js';

const LONG = 'ä'.repeat(2_000);

interface Received {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly bytes: Buffer;
}

/** Sends a request that accepts these codings, and returns the bytes of the answer as they came. */
function ask(api: ApiServer, path: string, headers: Readonly<Record<string, string>>, method = 'GET') {
  const options = { host: '127.0.0.1', port: api.address().port, path, method, agent: false };
  return new Promise<Received>((resolve, reject) => {
    const sent = request({ ...options, headers: { authorization: 'Bearer operator', ...headers } }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, bytes: Buffer.concat(chunks) }),
      );
    });
    sent.on('error', reject);
    sent.end();
  });
}

const GZIP = { 'accept-encoding': 'gzip, deflate, br' };

const serve = (handlers: Partial<HandlersFor<Tiny>> = {}) =>
  startTiny({ handlers: { listItems: async () => ({ status: 200, body: { text: LONG } }), ...handlers } });

describe('an answer', () => {
  it('is compressed for a client that accepts it', async () => {
    const { headers, bytes } = await ask(await serve(), '/api/v1/items', GZIP);
    expect(headers).toMatchObject({
      'content-encoding': 'gzip',
      'content-length': String(bytes.length),
      'content-type': 'application/json; charset=utf-8',
      vary: 'Accept-Encoding',
    });
    expect(bytes.length).toBeLessThan(200);
    expect(JSON.parse(gunzipSync(bytes).toString())).toEqual({ text: LONG });
  });

  it.each([[{}], [{ 'accept-encoding': 'br' }], [{ 'accept-encoding': 'gzip;q=0' }]])(
    'is plain for %j',
    async (given) => {
      const { headers, bytes } = await ask(await serve(), '/api/v1/items', given as Record<string, string>);
      expect(headers['content-encoding']).toBeUndefined();
      // A cache in between must not give this one to a client that accepts gzip, or the other way round.
      expect(headers.vary).toBe('Accept-Encoding');
      expect(headers['content-length']).toBe(String(bytes.length));
      expect(JSON.parse(bytes.toString())).toEqual({ text: LONG });
    },
  );

  it('has the same headers for HEAD', async () => {
    const api = await serve();
    const { headers } = await ask(api, '/api/v1/items', GZIP);
    const head = await ask(api, '/api/v1/items', GZIP, 'HEAD');
    expect(head.bytes).toHaveLength(0);
    for (const name of ['content-encoding', 'content-length', 'content-type', 'vary'])
      expect(head.headers[name], name).toBe(headers[name]);
  });

  it('keeps its ETag, which names a state and no coding', async () => {
    const etag = '"0123456789abcdef"';
    const api = await serve({ listItems: async () => ({ status: 200, body: { text: LONG }, headers: { etag } }) });
    expect((await ask(api, '/api/v1/items', GZIP)).headers.etag).toBe(etag);
    // The answer also shows what is not part of that state, so a client with the tag gets it whole.
    const again = await ask(api, '/api/v1/items', { ...GZIP, 'if-none-match': etag });
    expect([again.status, JSON.parse(gunzipSync(again.bytes).toString())]).toEqual([200, { text: LONG }]);
  });

  it('is plain when it is short, a failure, a stream or no JSON', async () => {
    const api = await serve({
      getItem: async ({ stream }) => {
        if (stream === null) throw new Fault('module_in_use', LONG);
        await stream({ event: 'piece', piece: LONG });
        return { status: 200, body: { name: LONG, size: 1 } };
      },
      dumpItems: async () => ({ status: 200, body: LONG }),
    });
    const lines = await ask(api, '/api/v1/items/a', { ...GZIP, accept: 'application/x-ndjson' });
    expect(lines.bytes.toString()).toContain(LONG);
    for (const path of ['/api/v1/ping', '/api/v1/items/a', '/api/v1/dump'])
      expect((await ask(api, path, GZIP)).headers['content-encoding'], path).toBeUndefined();
  });
});

it.each([
  [undefined, false],
  ['', false],
  ['gzip', true],
  ['GZIP;q=0.5', true],
  ['x-gzip', true],
  ['deflate, gzip;q=1.0, *;q=0.5', true],
  ['*', true],
  ['br, *;q=0', false],
  ['gzip;q=0, *', false],
  ['gzip; q=0.000', false],
  ['gzip;q=', false],
  ['gzip;q=nonsense', false],
  ['notgzip', false],
])('Accept-Encoding: %s', (accepted, expected) => {
  expect(acceptsGzip(accepted)).toBe(expected);
});

describe('the documents about the API', () => {
  const handlers = statusHandlers({
    health: () => Promise.reject(new Error('not asked')),
    openApi: () => openApiDocument(CONTRACT, { version: '0.1.0' }),
    moduleSchema: () => ({}),
  });
  // These handlers look at nothing of a call.
  const bodyOf = async (handler: unknown): Promise<unknown> =>
    (await (handler as () => Promise<{ body: unknown }>)()).body;

  it.each(['getOpenApi', 'getApiPage', 'getModuleSchema'] as const)(
    'are written and compressed once: %s',
    async (id) => {
      const body = await bodyOf(handlers[id]);
      expect(body).toBeInstanceOf(StaticText);
      expect(await bodyOf(handlers[id])).toBe(body);
      const { text } = body as StaticText<unknown>;
      const bytes = await (body as StaticText<unknown>).gzipped();
      expect(await (body as StaticText<unknown>).gzipped()).toBe(bytes);
      expect(gunzipSync(bytes).toString()).toBe(text);
    },
  );
});
