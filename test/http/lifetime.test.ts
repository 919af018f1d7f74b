import { createHash } from 'node:crypto';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createApiServer } from '../../daemon/http/api-server.js';
import { statusHandlers } from '../../daemon/status.js';
import { CONTRACT } from '../../src/contract/contract.js';
import { openApiDocument } from '../../src/contract/openapi.js';
import { silentLogger } from '../../src/kernel/logger.js';
import {
  authenticate,
  authorize,
  authorizeOn,
  clock,
  echo,
  noKeys,
  send,
  startTiny,
  TINY,
  tlsFiles,
} from '../support/http.js';

const common = {
  authenticate,
  authorize,
  authorizeOn,
  idempotency: noKeys,
  logger: silentLogger,
  clock,
  newRequestId: () => 'id',
  listen: { host: '127.0.0.1', port: 0 },
  tls: null,
  trustProxyTls: false,
  validateAnswers: true,
};

describe('a start', () => {
  it('fails when a route has no handler or no access', () => {
    const { run: _, ...handlers } = echo;
    // biome-ignore lint/suspicious/noExplicitAny: what the compiler would refuse
    expect(() => createApiServer({ ...common, contract: TINY, handlers: handlers as any })).toThrow(
      /route run has no handler/,
    );
    const { access: __, ...open } = TINY.ping;
    // biome-ignore lint/suspicious/noExplicitAny: what the compiler would refuse
    const contract = { ...TINY, ping: open as any };
    expect(() => createApiServer({ ...common, contract, handlers: echo })).toThrow(/route ping does not say who/);
  });

  it('tells why it cannot listen, and may be stopped all the same', async () => {
    const first = await startTiny();
    const taken = createApiServer({
      ...common,
      contract: TINY,
      handlers: echo,
      listen: { host: '127.0.0.1', port: first.address().port },
    });
    await expect(taken.start()).rejects.toMatchObject({ code: 'port_in_use' });
    await taken.stop();
    const nowhere = createApiServer({
      ...common,
      contract: TINY,
      handlers: echo,
      listen: { host: '192.0.2.1', port: 0 },
    });
    await expect(nowhere.start()).rejects.toMatchObject({ code: 'invalid_config' });
    await nowhere.stop();
    await createApiServer({ ...common, contract: TINY, handlers: echo }).stop();
  });
});

/** A server with one request that waits until `finish` is called or it is aborted. */
async function busy(drainMs: number) {
  let finish = () => {};
  let begun = () => {};
  const begin = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const api = await startTiny({
    limits: { drainMs },
    handlers: {
      run: async ({ signal }) => {
        begun();
        await new Promise<void>((resolve, reject) => {
          finish = resolve;
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        });
        return { status: 200, body: { name: 'finished', size: 1 } };
      },
    },
  });
  const answer = send(api, 'POST', '/api/v1/run');
  await begin;
  return { api, answer, finish: () => finish() };
}

describe('a stop', () => {
  it('lets running requests finish, and closes the rest', async () => {
    const { api, answer, finish } = await busy(5_000);
    const { port } = api.address();
    const idle = connect(port, '127.0.0.1');
    const closed = new Promise((resolve) => idle.once('close', resolve));
    await new Promise((resolve) => idle.once('connect', resolve));
    const stopped = api.stop();
    await expect(send(api, 'GET', '/api/v1/ping')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    finish();
    expect((await answer).json).toEqual({ name: 'finished', size: 1 });
    await stopped;
    await closed;
    await api.stop();
  });

  it('refuses new requests on connections that are still busy', async () => {
    const { api, answer, finish } = await busy(5_000);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const { port } = api.address();
    const half = connect(port, '127.0.0.1');
    await new Promise((resolve) => half.once('connect', resolve));
    half.write('GET /api/v1/ping HTTP/1.1\r\nHost: x\r\n');
    // This process is the server too: it has read what came when another request is answered.
    await send(api, 'GET', '/api/v1/ping');
    const stopped = api.stop();
    const text = await new Promise<string>((resolve) => {
      const chunks: Buffer[] = [];
      half.on('data', (chunk) => chunks.push(chunk));
      half.on('close', () => resolve(Buffer.concat(chunks).toString()));
      half.write('\r\n');
    });
    expect(text).toMatch(/^HTTP\/1\.1 503 /);
    expect(text).toMatch(/^connection: close\r$/im);
    expect(text).toMatch(/^retry-after: \d+\r$/im);
    expect(text).toContain('"code":"shutting_down"');
    finish();
    await answer;
    await stopped;
    agent.destroy();
  });

  it('does not wait for ever: a handler is aborted, and may still say so', async () => {
    const { api, answer } = await busy(100);
    await api.stop();
    expect((await answer).json).toMatchObject({ status: 503, code: 'shutting_down' });
  });

  it('sends the whole of an answer that is on its way', async () => {
    let begun = () => {};
    const begin = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const filter = 'x'.repeat(8_000_000);
    const listItems = async () => {
      begun();
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { status: 200 as const, body: { filter } };
    };
    const api = await startTiny({ tls: tlsFiles(), handlers: { listItems } });
    const answer = send(api, 'GET', '/api/v1/items');
    await begin;
    await api.stop();
    expect((await answer).json.filter).toHaveLength(filter.length);
  });

  it('does not wait for a TLS handshake that never ends', async () => {
    const api = await startTiny({ tls: tlsFiles(), limits: { handshakeTimeoutMs: 60_000 } });
    const silent = connect(api.address().port, '127.0.0.1');
    const closed = new Promise((resolve) => silent.once('close', resolve));
    await new Promise((resolve) => silent.once('connect', resolve));
    expect((await send(api, 'GET', '/api/v1/ping')).status).toBe(200);
    await api.stop();
    await closed;
  });

  it('cuts what does not end at all', async () => {
    let begun = () => {};
    const begin = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const run = () => {
      begun();
      return new Promise<never>(() => {});
    };
    const api = await startTiny({ limits: { drainMs: 50 }, handlers: { run } });
    const answer = new Promise((resolve) => {
      const client = request({
        port: api.address().port,
        method: 'POST',
        path: '/api/v1/run',
        headers: { authorization: 'Bearer operator', 'content-length': '0' },
      });
      client.on('error', resolve);
      client.end();
    });
    await begin;
    await api.stop();
    expect(await answer).toMatchObject({ code: 'ECONNRESET' });
  });
});

describe('the routes about the API itself', () => {
  it('are open to everybody', async () => {
    const { getStatus, getOpenApi, getApiPage, getModuleSchema } = CONTRACT;
    const contract = { getStatus, getOpenApi, getApiPage, getModuleSchema };
    const document = openApiDocument(contract, { version: '0.1.0' });
    let made = 0;
    const api = createApiServer({
      ...common,
      tls: tlsFiles(),
      contract,
      handlers: statusHandlers({
        health: async () => ({
          status: 'ok',
          protocol_version: 1,
          public_key: '0'.repeat(64),
          version: '0.1.0',
          reasons: [],
        }),
        openApi: () => {
          made += 1;
          return document;
        },
        moduleSchema: () => ({ type: 'object' }),
      }),
    });
    await api.start();
    try {
      const get = async (path: string) => (await send(api, 'GET', `/api/v1${path}`, { token: null })).json;
      expect(await get('/status')).toEqual({
        status: 'ok',
        protocol_version: 1,
        public_key: '0'.repeat(64),
        version: '0.1.0',
        reasons: [],
      });
      expect(await get('/openapi.json')).toEqual(JSON.parse(JSON.stringify(document)));
      expect(await get('/openapi.json')).toEqual(JSON.parse(JSON.stringify(document)));
      const { headers, text } = await send(api, 'GET', '/api/v1/docs', { token: null });
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(text).toContain('id="getModuleSchema"');
      // The policy allows the style and the script of the page, and nothing else.
      const sources = ['style', 'script'].map((element) => {
        const [, content = ''] = new RegExp(`<${element}>([\\s\\S]*?)</${element}>`).exec(text) ?? [];
        return `${element}-src 'sha256-${createHash('sha256').update(content).digest('base64')}'`;
      });
      expect(headers['content-security-policy']).toBe(
        `default-src 'none'; ${sources.join('; ')}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      );
      expect(made).toBe(1);
      expect(await get('/schemas/module/v1.json')).toEqual({ type: 'object' });
    } finally {
      await api.stop();
    }
  });
});
