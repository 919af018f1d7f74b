/** Assignments and rollouts over HTTP, with every answer held against the contract. */
import { ulid } from 'ulid';
import { describe, expect, it, onTestFinished } from 'vitest';
import { assignmentHandlers } from '../../daemon/engine/assignments/assignment-routes.js';
import { moduleHandlers } from '../../daemon/engine/modules/module-service.js';
import { rolloutHandlers } from '../../daemon/engine/rollouts/rollout-routes.js';
import { createApiServer } from '../../daemon/http/api-server.js';
import { assignmentRoutes } from '../../src/contract/assignments.js';
import { moduleRoutes } from '../../src/contract/modules.js';
import { rolloutRoutes } from '../../src/contract/rollouts.js';
import { silentLogger } from '../../src/kernel/logger.js';
import { openBench } from '../support/engine.js';
import { authenticate, authorize, authorizeOn, clock, noKeys, send } from '../support/http.js';

const BASE = '/api/v1';

async function serve() {
  const bench = await openBench();
  await bench.upload('site', { '/site': 'x' });
  const api = createApiServer({
    contract: { ...assignmentRoutes, ...rolloutRoutes, ...moduleRoutes },
    handlers: {
      ...assignmentHandlers(bench.engine),
      ...rolloutHandlers(bench.engine),
      ...moduleHandlers(bench.engine.modules),
    },
    authenticate,
    authorize,
    authorizeOn,
    idempotency: noKeys,
    logger: silentLogger,
    clock,
    newRequestId: () => ulid(),
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  const call = (method: string, path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    bench.while(send(api, method, BASE + path, { body, headers }));
  return { bench, api, call };
}

const WEB = { name: 'web', modules: ['site'], selector: '*' };

describe('the assignment routes', () => {
  it('create, list, get, change and delete', async () => {
    const { bench, call } = await serve();
    const agent = await bench.agent('1');
    expect(await call('POST', '/assignments', WEB)).toMatchObject({
      status: 201,
      json: { ...WEB, description: null, created_by: '0'.repeat(32) },
    });
    expect((await call('GET', '/assignments')).json).toMatchObject([WEB]);
    expect((await call('GET', '/assignments/web')).json.agents).toEqual([{ node_id: agent.nodeId, name: 'web-1' }]);
    expect((await call('PUT', '/assignments/web', { description: 'x', selector: null })).json).toMatchObject({
      ...WEB,
      description: 'x',
    });
    expect((await call('DELETE', '/modules/site')).json).toMatchObject({ status: 409, code: 'module_in_use' });
    expect((await call('DELETE', '/assignments/web')).status).toBe(204);
    expect((await call('DELETE', '/assignments/web')).status).toBe(404);
  });

  it('take an assignment without modules, which only selects agents', async () => {
    const { call } = await serve();
    const { status, json } = await call('POST', '/assignments', { ...WEB, modules: [] });
    expect({ status, modules: json.modules }).toEqual({ status: 201, modules: [] });
  });

  it.each([
    ['POST', '/assignments', { ...WEB, name: 'a b' }, 400, 'invalid_name'],
    ['POST', '/assignments', { ...WEB, selector: '' }, 400, 'invalid_selector'],
    ['POST', '/assignments', { ...WEB, modules: ['nix'] }, 400, 'unknown_module'],
    ['POST', '/assignments', { ...WEB, more: 1 }, 400, 'invalid_body'],
    ['POST', '/assignments', { ...WEB, name: 'taken' }, 409, 'assignment_exists'],
    ['GET', '/assignments/nix', undefined, 404, 'assignment_not_found'],
    ['PUT', '/assignments/nix', {}, 404, 'assignment_not_found'],
    ['POST', '/assignments/nix/plan', undefined, 404, 'assignment_not_found'],
    ['POST', '/assignments/nix/apply', {}, 404, 'assignment_not_found'],
    ['POST', '/assignments/taken/apply', { modules: ['nix'] }, 404, 'module_not_found'],
    ['POST', '/assignments/taken/apply', { max_failures: 0 }, 400, 'invalid_body'],
    ['POST', '/assignments/taken/apply', { expect: { x: 'y' } }, 400, 'invalid_body'],
    ['POST', '/rollouts/nix/cancel', undefined, 404, 'rollout_not_found'],
    ['POST', '/rollouts/plan', {}, 400, 'invalid_body'],
    ['POST', '/rollouts/plan', { selector: '*', agents: ['1'.repeat(32)] }, 400, 'invalid_body'],
    ['POST', '/rollouts/apply', undefined, 400, 'invalid_body'],
    ['POST', '/rollouts/apply', { selector: '*', agents: ['1'.repeat(32)] }, 400, 'invalid_body'],
    ['POST', '/rollouts/apply', { agents: [] }, 400, 'invalid_body'],
    ['POST', '/rollouts/apply', { agents: Array(10_001).fill('1'.repeat(32)) }, 400, 'invalid_body'],
    ['POST', '/rollouts/apply', { selector: '*', assignment: 'taken' }, 400, 'invalid_body'],
    ['POST', '/rollouts/apply', { agents: ['1'.repeat(32)] }, 404, 'agent_not_found'],
    ['POST', '/rollouts/plan', { selector: '=' }, 400, 'invalid_selector'],
    ['POST', '/rollouts/apply', { selector: '*', modules: ['nix'] }, 404, 'module_not_found'],
  ])('%s %s %j is %i %s', async (method, path, body, status, code) => {
    const { call } = await serve();
    await call('POST', '/assignments', { ...WEB, name: 'taken' });
    expect((await call(method, path, body)).json).toMatchObject({ status, code });
  });

  it('let viewers only look', async () => {
    const { api } = await serve();
    const options = { token: 'viewer', body: WEB };
    expect((await send(api, 'POST', `${BASE}/assignments`, options)).status).toBe(403);
    expect((await send(api, 'GET', `${BASE}/assignments`, { token: 'viewer' })).status).toBe(200);
  });
});

describe('the rollout routes', () => {
  it('plan and apply, with and without a body, and stream', async () => {
    const { bench, call } = await serve();
    await bench.agent('1');
    await bench.agent('2', { connected: false });
    await call('POST', '/assignments', WEB);
    const plan = await call('POST', '/assignments/web/plan');
    expect(plan).toMatchObject({ status: 200, json: { assignment: 'web', has_changes: true } });
    const summary = { agents: 2, succeeded: 1, failed: 0, unreachable: 1, skipped: 0 };
    const started = await call('POST', '/assignments/web/apply', { wait: false, concurrency: 5000 });
    expect(started).toMatchObject({ status: 202, json: { results: [], summary: { agents: 2, succeeded: 0 } } });
    await bench.settle();
    const { text } = await call('POST', '/assignments/web/apply', {}, { accept: 'application/x-ndjson' });
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ event }) => event)).toEqual(['started', 'rollout', 'agent', 'agent', 'rollout', 'result']);
    const applied = lines.find(({ agent }) => agent?.status === 'succeeded');
    expect(applied.agent.result.resources).toMatchObject([{ identity: '/site', status: 'unchanged' }]);
    expect(lines.at(-1).result).toMatchObject({ rollout_id: lines[0].rollout_id, has_changes: false, summary });
  });

  it('plan and apply on a selector and on named agents, and stream resources on request', async () => {
    const { bench, call } = await serve();
    const agent = await bench.agent('1');
    await bench.agent('2', { connected: false });
    const over = { selector: '*', agents: null, modules: ['site'] };
    expect(await call('POST', '/rollouts/plan', over)).toMatchObject({
      status: 200,
      json: {
        assignment: null,
        selector: '*',
        has_changes: true,
        summary: { agents: 2, succeeded: 1, unreachable: 1 },
      },
    });
    const stream = { accept: 'application/x-ndjson' };
    const body = { agents: [agent.nodeId], modules: ['site'], progress: true };
    const { text } = await call('POST', '/rollouts/apply', body, stream);
    const lines = text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ event }) => event)).toEqual(['started', 'rollout', 'resource', 'agent', 'rollout', 'result']);
    expect(lines[2]).toEqual({
      event: 'resource',
      node_id: agent.nodeId,
      name: 'web-1',
      resource: { module: 'site', kind: 'file-unix', identity: '/site', action: 'create', status: 'changed' },
    });
    expect(lines[5].result).toMatchObject({ selector: null, summary: { agents: 1, succeeded: 1 } });
    expect((await call('POST', '/rollouts/apply', { ...over, wait: false })).status).toBe(202);
  });

  it('take the plans of as many agents as a request may name', async () => {
    const { call } = await serve();
    const ids = Array.from({ length: 10_000 }, (_, number) => number.toString(16).padStart(32, '0'));
    const hash = `${'a'.repeat(64)}.${'b'.repeat(64)}`;
    const expected = Object.fromEntries(ids.map((id) => [id, hash]));
    const { json } = await call('POST', '/rollouts/apply', { agents: ids, expect: expected });
    expect(json).toMatchObject({ status: 404, code: 'agent_not_found' });
    expect(json.node_ids).toHaveLength(10_000);
  });

  it('are not for viewers', async () => {
    const { api } = await serve();
    for (const path of ['plan', 'apply', 'nix/cancel']) {
      const { json } = await send(api, 'POST', `${BASE}/rollouts/${path}`, {
        token: 'viewer',
        body: { selector: '*' },
      });
      expect(json).toMatchObject({ status: 403, code: 'role_forbidden' });
    }
  });

  it('cancel what is under way', async () => {
    const { bench, call } = await serve();
    const agent = await bench.agent('1');
    agent.diligent = false;
    await call('POST', '/assignments', WEB);
    const { json } = await call('POST', '/assignments/web/apply', { wait: false });
    await bench.settle();
    const cancelled = await call('POST', `/rollouts/${json.rollout_id}/cancel`);
    expect(cancelled.status).toBe(202);
    expect(cancelled.json.cancelled).toHaveLength(1);
  });
});
