/** The routes of secrets over real connections: with TLS, without it, and behind a proxy. */
import { request } from 'node:http';
import { networkInterfaces } from 'node:os';
import { ulid } from 'ulid';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ApiServer, createApiServer } from '../../daemon/http/api-server.js';
import { secretHandlers } from '../../daemon/secrets/secret-service.js';
import { secretRoutes } from '../../src/contract/secrets.js';
import { needs } from '../support/agent.js';
import { recordingLogger } from '../support/database.js';
import { authenticate, authorize, authorizeOn, clock, send, storedKeys, tlsFiles } from '../support/http.js';
import { openSecrets } from '../support/secrets.js';

const VALUE = 'correct horse battery';
const BODY = { name: 'TOKEN', value: VALUE };

interface Options {
  readonly tls?: boolean;
  readonly trustProxyTls?: boolean;
  readonly host?: string;
}

async function serve({ tls = true, trustProxyTls = false, host = '127.0.0.1' }: Options = {}) {
  const { service, usage } = await openSecrets();
  const logger = recordingLogger();
  const api = createApiServer({
    contract: secretRoutes,
    handlers: secretHandlers({ secrets: service, usage, machines: { all: async () => [] } }),
    authenticate,
    authorize,
    authorizeOn,
    idempotency: await storedKeys(),
    logger,
    clock,
    newRequestId: ulid,
    listen: { host, port: 0 },
    tls: tls ? tlsFiles() : null,
    trustProxyTls,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  return { api, logger, service };
}

const create = (api: ApiServer, headers = {}) => send(api, 'POST', '/api/v1/secrets', { body: BODY, headers });

describe('the routes of secrets', () => {
  it('create, show, list, change and delete, and never answer with a value', async () => {
    const { api, logger } = await serve();
    const created = await create(api);
    expect(created).toMatchObject({ status: 201, json: { name: 'TOKEN', description: null, expires_at: null } });
    expect(created.json).not.toHaveProperty('value');
    const again = await create(api);
    expect(again).toMatchObject({ status: 409, json: { code: 'secret_exists' } });
    const change = { body: { value: null, description: 'of the shop', restriction: { tags: 'role=db' } } };
    const changed = await send(api, 'PUT', '/api/v1/secrets/TOKEN', change);
    expect(changed).toMatchObject({ status: 200, json: { restriction: { node_ids: [], tags: 'role=db' } } });
    const same = { body: { restriction: changed.json.restriction } };
    expect(await send(api, 'PUT', '/api/v1/secrets/TOKEN', same)).toMatchObject({ status: 200 });
    const left = await send(api, 'PUT', '/api/v1/secrets/TOKEN', { body: { description: null } });
    expect(left.json).toMatchObject({ description: null, restriction: { tags: 'role=db' } });
    const cleared = await send(api, 'PUT', '/api/v1/secrets/TOKEN', { body: { restriction: null } });
    expect(cleared.json).not.toHaveProperty('restriction');
    const listed = await send(api, 'GET', '/api/v1/secrets', { token: 'viewer' });
    expect(listed).toMatchObject({ status: 200, json: [{ name: 'TOKEN' }] });
    const used = await send(api, 'GET', '/api/v1/secrets/TOKEN/usage', { token: 'viewer' });
    expect(used).toMatchObject({ status: 200, json: { name: 'TOKEN', modules: [], agents: [] } });
    expect(await send(api, 'DELETE', '/api/v1/secrets/TOKEN')).toMatchObject({ status: 204 });
    const gone = await send(api, 'GET', '/api/v1/secrets/TOKEN');
    expect(gone).toMatchObject({ status: 404, json: { code: 'secret_not_found' } });
    const answers = [created, again, changed, left, cleared, listed, used, gone].map(({ text }) => text);
    expect(answers.join()).not.toContain(VALUE);
    expect(JSON.stringify(logger.lines)).not.toContain(VALUE);
  });

  it.each([
    ['no body', undefined],
    ['an unknown key', { ...BODY, expires: null }],
    ['a number for a value', { name: 'TOKEN', value: 12345678 }],
    ['broken JSON', `{"name": "TOKEN", "value": "${VALUE}"`],
    ['too long a value', { name: 'TOKEN', value: VALUE.repeat(4000) }],
    ['a bad expiry', { ...BODY, expires_at: 'soon' }],
  ])('refuse %s without quoting the value', async (_what, body) => {
    const { api, logger } = await serve();
    const headers = { 'content-type': 'application/json' };
    const refused = await send(api, 'POST', '/api/v1/secrets', { body, headers });
    expect(refused).toMatchObject({ status: 400, json: { code: 'invalid_body' } });
    expect(refused.text + JSON.stringify(logger.lines)).not.toContain(VALUE);
  });

  it('are read by viewers and written by operators', async () => {
    const { api } = await serve();
    const options = { token: 'viewer', body: BODY };
    expect(await send(api, 'POST', '/api/v1/secrets', options)).toMatchObject({
      status: 403,
      json: { code: 'role_forbidden' },
    });
    expect(await send(api, 'GET', '/api/v1/secrets', { token: null })).toMatchObject({ status: 401 });
  });
});

describe('a write of a secret', () => {
  it('is taken over plain HTTP from this machine', async () => {
    const { api } = await serve({ tls: false });
    expect((await create(api)).status).toBe(201);
  });

  it('is refused over plain HTTP from elsewhere, before the body is looked at', async (context) => {
    const address = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
    needs(context, address !== undefined, 'a network interface');
    const { api, service } = await serve({ tls: false, host: '0.0.0.0' });
    for (const [method, path] of [
      ['POST', '/secrets'],
      ['PUT', '/secrets/TOKEN'],
      ['DELETE', '/secrets/TOKEN'],
    ] as const) {
      const answer = await new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
        const options = {
          host: address,
          port: api.address().port,
          method,
          path: `/api/v1${path}`,
          headers: { authorization: 'Bearer operator', 'content-type': 'application/json' },
        };
        const sent = request(options, (response) => {
          let text = '';
          response.on('data', (chunk) => {
            text += chunk;
          });
          response.on('end', () => resolve({ status: response.statusCode, text }));
        });
        sent.on('error', reject);
        sent.end(method === 'DELETE' ? undefined : '{"broken":');
      });
      expect(answer.status).toBe(403);
      expect(JSON.parse(answer.text)).toMatchObject({ code: 'tls_required' });
    }
    expect(await service.list()).toEqual([]);
  });

  it.each([
    [201, { 'x-forwarded-proto': 'https' }],
    [201, { 'x-forwarded-proto': 'http, HTTPS' }],
    [403, { 'x-forwarded-proto': 'http' }],
    [403, { 'x-forwarded-proto': 'https, http' }],
    [403, {}],
  ])('behind a proxy is answered with %i when it says %j', async (status, headers) => {
    const { api } = await serve({ tls: false, trustProxyTls: true });
    expect((await create(api, headers)).status).toBe(status);
    expect((await send(api, 'GET', '/api/v1/secrets')).status).toBe(200);
  });

  it('is not taken from a client that is no proxy', async () => {
    const { api } = await serve({ tls: true, trustProxyTls: true });
    expect((await create(api, { 'x-forwarded-proto': 'http' })).status).toBe(403);
    expect((await create(api)).status).toBe(201);
  });
});
