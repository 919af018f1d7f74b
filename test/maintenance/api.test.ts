/** The routes of maintenance windows over a socket. */
import { ulid } from 'ulid';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createApiServer } from '../../daemon/http/api-server.js';
import { maintenanceWindowHandlers } from '../../daemon/maintenance/maintenance-windows.js';
import { maintenanceWindowRoutes } from '../../src/contract/maintenance-windows.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { authenticate, authorize, authorizeOn, clock, send, storedKeys } from '../support/http.js';
import { openBench } from '../support/maintenance.js';

const PATH = '/api/v1/maintenance-windows';

async function serve() {
  const bench = await openBench();
  const api = createApiServer({
    contract: maintenanceWindowRoutes,
    handlers: maintenanceWindowHandlers(bench.windows),
    authenticate,
    authorize,
    authorizeOn,
    idempotency: await storedKeys(),
    logger: silentLogger,
    clock,
    newRequestId: ulid,
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  const now = bench.now();
  return { api, bench, body: { reason: 'new switch', starts_at: now, ends_at: now + 3600 } };
}

describe('the routes of maintenance windows', () => {
  it('create, show, list, change and delete', async () => {
    const { api, body } = await serve();
    const admin = { token: 'admin' };
    const created = await send(api, 'POST', PATH, { ...admin, body });
    expect(created).toMatchObject({ status: 201, json: { ...body, created_by: 'a'.repeat(32), status: 'active' } });
    const one = `${PATH}/${created.json.id}`;
    expect(await send(api, 'GET', one, { token: 'viewer' })).toMatchObject({ status: 200, json: created.json });
    expect((await send(api, 'GET', PATH, { token: 'viewer' })).json).toEqual([created.json]);
    const change = { ...admin, body: { ends_at: body.ends_at + 60 } };
    expect(await send(api, 'PUT', one, change)).toMatchObject({
      status: 200,
      json: { reason: 'new switch', ends_at: body.ends_at + 60 },
    });
    expect(await send(api, 'DELETE', one, admin)).toMatchObject({ status: 204 });
    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      const answer = await send(api, method, one, method === 'PUT' ? change : admin);
      expect(answer).toMatchObject({ status: 404, json: { code: 'maintenance_window_not_found' } });
    }
  });

  it.each([
    ['no body', () => undefined, ''],
    ['no reason', ({ reason: _, ...body }: object & { reason: string }) => body, '/reason'],
    ['a blank reason', (body: object) => ({ ...body, reason: '  ' }), '/reason'],
    ['an end at the start', (body: { starts_at: number }) => ({ ...body, ends_at: body.starts_at }), '/ends_at'],
    ['milliseconds', (body: { ends_at: number }) => ({ ...body, ends_at: body.ends_at * 1000 }), '/ends_at'],
    ['a fraction', (body: object) => ({ ...body, starts_at: 1.5 }), '/starts_at'],
    ['an unknown field', (body: object) => ({ ...body, until: 1 }), ''],
  ])('refuse %s', async (_what, change, path) => {
    const { api, body, bench } = await serve();
    const refused = await send(api, 'POST', PATH, { token: 'admin', body: change(body) });
    expect(refused).toMatchObject({ status: 400 });
    if (path !== '') expect(refused.json.errors).toMatchObject([{ path }]);
    expect(await bench.windows.list()).toEqual([]);
  });

  it('are read by everybody and written by admins', async () => {
    const { api, body } = await serve();
    for (const token of ['operator', 'viewer']) {
      const refused = await send(api, 'POST', PATH, { token, body });
      expect(refused).toMatchObject({ status: 403, json: { code: 'admin_required' } });
    }
    expect((await send(api, 'GET', PATH, { token: 'operator' })).status).toBe(200);
    expect((await send(api, 'GET', PATH, { token: null })).status).toBe(401);
  });
});
