import { connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { isUlid } from '../../src/kernel/ids.js';
import { send, sendBytes, startTiny, tlsFiles } from '../support/http.js';

const head = (first: string, ...headers: readonly string[]) => [first, 'Host: x', ...headers, '', ''].join('\r\n');

/** Status, code and whether the answer is as complete as any other. */
function parse(text: string) {
  const [top = '', body = ''] = text.split('\r\n\r\n');
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(top)?.[1]?.trim();
  return {
    status: Number(top.split(' ')[1]),
    code: body.startsWith('{') ? JSON.parse(body).code : undefined,
    complete:
      isUlid(header('x-request-id') ?? '') &&
      header('cache-control') === 'no-store' &&
      header('content-type') === 'application/problem+json; charset=utf-8' &&
      header('connection') === 'close',
  };
}

describe('large requests', () => {
  it('are taken up to the limit of the body', async () => {
    const api = await startTiny();
    const body = (bytes: number) => `{"size":1,"note":"${'x'.repeat(bytes - 20)}"}`;
    const headers = { 'content-type': 'application/json' };
    const limit = 2 * 1024 * 1024;
    expect(body(limit).length).toBe(limit);
    expect((await send(api, 'PUT', '/api/v1/items/a', { body: body(limit), headers })).status).toBe(200);
    const over = await send(api, 'PUT', '/api/v1/items/a', { body: body(limit + 1), headers });
    expect(over.json).toMatchObject({ status: 413, code: 'body_too_large' });
    const chunked = { ...headers, 'transfer-encoding': 'chunked' };
    const streamed = await send(api, 'PUT', '/api/v1/items/a', { body: body(limit + 1), headers: chunked });
    expect(streamed.json.code).toBe('body_too_large');
    expect(
      (await send(api, 'DELETE', '/api/v1/items/a', { token: 'admin', body: body(limit + 1), headers })).status,
    ).toBe(413);
  });

  it('get the refusal even when they are far too large', async () => {
    const api = await startTiny();
    const body = Buffer.alloc(24 * 1024 * 1024, 0x20);
    const answer = await send(api, 'PUT', '/api/v1/items/a', { body, headers: { 'content-type': 'application/json' } });
    expect(answer.status).toBe(413);
    const chunked = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    expect((await send(api, 'PUT', '/api/v1/items/a', { body, headers: chunked })).status).toBe(413);
  });

  it('are refused for long URLs and many headers', async () => {
    const api = await startTiny();
    const path = `/api/v1/items?filter=${'x'.repeat(4096)}`;
    expect((await send(api, 'GET', path)).json).toMatchObject({ status: 414, code: 'url_too_long' });
    expect((await send(api, 'GET', path.slice(0, 4096))).status).toBe(200);
    const sent = await sendBytes(api, head('GET /api/v1/ping HTTP/1.1', `X-Long: ${'x'.repeat(17_000)}`));
    expect(parse(sent)).toEqual({ status: 431, code: 'headers_too_large', complete: true });
    const fine = await send(api, 'GET', '/api/v1/ping', { headers: { 'x-long': 'x'.repeat(15_000) } });
    expect(fine.status).toBe(200);
  });
});

describe('slow requests', () => {
  const slow = { headersTimeoutMs: 150, requestTimeoutMs: 400, checkIntervalMs: 50 };

  it('are cut off in their headers', async () => {
    const api = await startTiny({ limits: slow });
    const sent = await sendBytes(api, 'GET /api/v1/ping HTTP/1.1\r\nHost: x\r\nX-Drip: ');
    expect(parse(sent)).toEqual({ status: 408, code: 'request_timeout', complete: true });
  });

  it('are cut off in their body', async () => {
    const api = await startTiny({ limits: slow });
    const sent = await sendBytes(
      api,
      head(
        'PUT /api/v1/items/a HTTP/1.1',
        'Authorization: Bearer operator',
        'Content-Type: application/json',
        'Content-Length: 99',
      ),
      '{"size":',
    );
    expect(parse(sent)).toEqual({ status: 408, code: 'request_timeout', complete: true });
  });

  it('are cut off before their first byte and in the TLS handshake', async () => {
    const plain = await startTiny({ limits: slow });
    expect(parse(await sendBytes(plain))).toMatchObject({ status: 408 });
    const secure = await startTiny({ tls: tlsFiles(), limits: { ...slow, handshakeTimeoutMs: 150 } });
    expect(await sendBytes(secure)).toBe('');
  });

  it('do not keep others from their answers', async () => {
    const api = await startTiny({ limits: slow });
    const dripping = Array.from({ length: 50 }, () => sendBytes(api, 'GET / HTTP/1.1\r\nX: '));
    expect((await send(api, 'GET', '/api/v1/ping')).status).toBe(200);
    await Promise.all(dripping);
  });
});

describe('broken requests', () => {
  it.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['TLS on a plain port', Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0])],
    ['a length that is none', head('PUT /api/v1/items/a HTTP/1.1', 'Content-Length: x')],
    ['two lengths', head('PUT /api/v1/items/a HTTP/1.1', 'Content-Length: 1', 'Content-Length: 2')],
    ['length and chunks', head('PUT /api/v1/items/a HTTP/1.1', 'Content-Length: 1', 'Transfer-Encoding: chunked')],
    ['a bare line feed', 'GET /api/v1/ping HTTP/1.1\nHost: x\n\n\0'],
  ])('are refused: %s', async (_, bytes) => {
    const api = await startTiny();
    expect(parse(await sendBytes(api, bytes))).toEqual({ status: 400, code: 'bad_request', complete: true });
  });

  it('need a Host in HTTP/1.1', async () => {
    const api = await startTiny();
    const sent = await sendBytes(api, 'GET /api/v1/ping HTTP/1.1\r\nConnection: close\r\n\r\n');
    expect(parse(sent)).toMatchObject({ status: 400, code: 'bad_request' });
    expect(parse(await sendBytes(api, 'GET /api/v1/ping HTTP/1.0\r\n\r\n'))).toMatchObject({ status: 200 });
  });

  it('do not spoil an answer that has begun', async () => {
    const api = await startTiny({
      handlers: {
        run: async ({ stream }) => {
          for (let at = 0; at < 20; at += 1) {
            await stream?.({ event: 'piece', piece: String(at) });
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
          return { status: 200, body: { name: 'a', size: 1 } };
        },
      },
    });
    const sent = await sendBytes(
      api,
      head(
        'POST /api/v1/run HTTP/1.1',
        'Authorization: Bearer operator',
        'Accept: application/x-ndjson',
        'Content-Length: 0',
      ),
      'rubbish\r\n\r\n',
    );
    expect(sent.match(/HTTP\/1\.1/g) ?? []).toHaveLength(sent === '' ? 0 : 1);
  });

  it('leave the server unharmed when the client goes away at any byte', async () => {
    const api = await startTiny();
    const text = `${head('PUT /api/v1/items/a HTTP/1.1', 'Authorization: Bearer operator', 'Content-Type: application/json', 'Content-Length: 10')}{"size":1}`;
    for (let length = 0; length < text.length; length += 7) {
      await new Promise<void>((resolve) => {
        const socket = connect(api.address().port, '127.0.0.1', () => {
          socket.write(text.slice(0, length), () => socket.destroy());
        });
        socket.on('close', () => resolve());
      });
    }
    expect((await send(api, 'PUT', '/api/v1/items/a', { body: { size: 1 } })).status).toBe(200);
  });
});

describe('TLS', () => {
  it('is refused below 1.2', async () => {
    const api = await startTiny({ tls: tlsFiles() });
    const version = (maxVersion: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') =>
      new Promise<string | null>((resolve) => {
        const { port } = api.address();
        const options = {
          port,
          host: '127.0.0.1',
          rejectUnauthorized: false,
          minVersion: 'TLSv1' as const,
          maxVersion,
        };
        const socket = connectTls({ ...options, ciphers: 'DEFAULT@SECLEVEL=0' }, () => {
          resolve(socket.getProtocol());
          socket.destroy();
        });
        socket.on('error', () => resolve(null));
      });
    expect(await version('TLSv1.1')).toBeNull();
    expect(await version('TLSv1.2')).toBe('TLSv1.2');
    expect(await version('TLSv1.3')).toBe('TLSv1.3');
  });
});
