import { describe, expect, it } from 'vitest';
import { moduleHandlers } from '../../daemon/engine/modules/module-service.js';
import { operationHandlers } from '../../daemon/engine/operations/operation-reader.js';
import { runHandlers } from '../../daemon/engine/runs/run-routes.js';
import type { Handler } from '../../daemon/http/handler.js';
import { moduleRoutes } from '../../src/contract/modules.js';
import { operationRoutes } from '../../src/contract/operations.js';
import type { Operator } from '../../src/contract/operators.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { type DriftRecord, runRoutes } from '../../src/contract/runs.js';
import { isFault } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import { rejection } from '../support/database.js';
import { ALICE, type Bench, moduleText, openBench } from '../support/engine.js';

const OPERATOR: Operator = {
  operator_id: ALICE.actor.id,
  public_key: '0'.repeat(64),
  username: 'alice',
  role: 'operator',
  bootstrap: false,
  added_at: 0,
  added_by: 'system',
  removed_at: null,
  removed_by: null,
};

interface Request {
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
  readonly lines?: unknown[];
}

/** Calls a handler as the HTTP side does, and holds its answer, lines and faults against the contract. */
async function call<R extends RouteSpec>(route: R, handler: Handler<R>, request: Request = {}): Promise<unknown> {
  const { params, query = {}, body, lines } = request;
  const checkLine = route.stream && validator(route.stream);
  const stream = lines
    ? async (line: unknown) => {
        expect(checkLine?.problems(line)).toEqual([]);
        lines.push(line);
      }
    : null;
  const { signal } = new AbortController();
  const caller = {
    context: ALICE,
    operator: OPERATOR,
    rights: ALICE.rights,
    token: 't',
    keepPermitted: () => undefined,
  };
  const full = { params, query, body, ...caller, signal, stream };
  try {
    const answer = await handler(full as unknown as Parameters<Handler<R>>[0]);
    const schema = route.answers[answer.status];
    if (schema) expect(validator(schema).problems(answer.body)).toEqual([]);
    else expect(answer.body).toBeUndefined();
    return answer;
  } catch (error) {
    if (isFault(error))
      expect([...route.faults, 'bad_request', 'shutting_down', 'store_unavailable', 'unauthenticated']).toContain(
        error.code,
      );
    throw error;
  }
}

const handlersOf = ({ engine }: Bench) => ({
  ...moduleHandlers(engine.modules),
  ...runHandlers(engine),
  ...operationHandlers({
    applies: engine.applies,
    operations: engine.operations,
    state: engine.state,
  }),
});

const ROUTES = { ...moduleRoutes, ...runRoutes, ...operationRoutes };

describe('the handlers', () => {
  it('answer as the contract says: modules', async () => {
    const bench = await openBench();
    const handlers = handlersOf(bench);
    const body = { name: 'site', content: moduleText('site', { '/a': '' }) };
    const params = { name: 'site' };
    expect(await call(ROUTES.uploadModule, handlers.uploadModule, { body })).toMatchObject({ status: 201 });
    await call(ROUTES.listModules, handlers.listModules);
    await call(ROUTES.getModule, handlers.getModule, { params });
    await call(ROUTES.getModule, handlers.getModule, { params, query: { revision: 1 } });
    expect(await call(ROUTES.removeModule, handlers.removeModule, { params })).toMatchObject({ status: 204 });
    expect((await rejection(call(ROUTES.getModule, handlers.getModule, { params }))).code).toBe('module_not_found');
  });

  it('answer as the contract says: plan, apply, operations, state and drift', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const handlers = handlersOf(bench);
    await bench.upload('site', { '/a': '', '/b': '' });
    const params = { node_id: agent.nodeId };
    const body = { modules: ['site'] };

    const planLines: { event?: string }[] = [];
    const plan = bench.while(call(ROUTES.planAgent, handlers.planAgent, { params, body, lines: planLines }));
    expect(await plan).toMatchObject({ status: 200, body: { has_changes: true } });
    expect(planLines.map(({ event }) => event)).toEqual(['started', 'resource', 'resource', 'result']);

    const lines: { event?: string; operation_id?: string }[] = [];
    const applied = await bench.while(call(ROUTES.applyAgent, handlers.applyAgent, { params, body, lines }));
    expect(applied).toMatchObject({ status: 200, body: { status: 'succeeded', has_changes: true, plan_hash: null } });
    expect(lines.map(({ event }) => event)).toEqual(['started', 'resource', 'resource', 'result']);
    expect(lines.at(-1)).toEqual({ event: 'result', result: (applied as { body: unknown }).body });
    const operation_id = lines[0]?.operation_id;

    const replay: { event?: string }[] = [];
    await call(ROUTES.getOperation, handlers.getOperation, { params: { operation_id }, lines: replay });
    expect(replay.map(({ event }) => event)).toEqual(['started', 'resource', 'resource', 'result']);
    await call(ROUTES.getOperation, handlers.getOperation, { params: { operation_id } });
    await call(ROUTES.listOperations, handlers.listOperations, { query: { limit: 10_000, status: 'succeeded' } });
    expect(await call(ROUTES.listAgentOperations, handlers.listAgentOperations, { params })).toMatchObject({
      body: { total: 1, limit: 50, offset: 0 },
    });
    const output = { params: { ...params, operation_id } };
    expect(await call(ROUTES.getOperationOutput, handlers.getOperationOutput, output)).toMatchObject({
      body: { operation_id, output: {} },
    });
    await call(ROUTES.getState, handlers.getState, { params });

    const drift = bench.while(call(ROUTES.checkDrift, handlers.checkDrift, { params }));
    expect(await drift).toMatchObject({ body: { status: 'in_sync' } });
    await call(ROUTES.getLatestDrift, handlers.getLatestDrift, { params });
    await call(ROUTES.listAgentDrift, handlers.listAgentDrift, { params, query: { status: 'in_sync' } });
    await bench.while(call(ROUTES.checkDrift, handlers.checkDrift, { params }));
    const lists = [
      [
        `/agents/${agent.nodeId}/drift`,
        (query: object) => call(ROUTES.listAgentDrift, handlers.listAgentDrift, { params, query }),
      ],
      ['/drift', (query: object) => call(ROUTES.listDrift, handlers.listDrift, { query })],
    ] as const;
    for (const [path, list] of lists) {
      const { body } = (await list({})) as { readonly body: { readonly records: readonly DriftRecord[] } };
      const [newest, oldest] = body.records;
      const first = await list({ limit: 1, status: 'in_sync' });
      expect(first).toMatchObject({
        body: { records: [newest] },
        headers: { link: `</api/v1${path}?limit=1&status=in_sync&cursor=${newest?.drift_id}>; rel="next"` },
      });
      const last = await list({ limit: 1, status: 'in_sync', cursor: newest?.drift_id });
      expect(last).toMatchObject({ body: { records: [oldest] }, headers: {} });
    }
    const missing = rejection(call(ROUTES.getDrift, handlers.getDrift, { params: { drift_id: 'x' } }));
    expect((await missing).code).toBe('drift_not_found');
  });

  it('let an apply run on without a caller, and cancel it', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    agent.diligent = false;
    const handlers = handlersOf(bench);
    await bench.upload('site', { '/a': '' });
    const params = { node_id: agent.nodeId };
    const body = { modules: ['site'], wait: false };
    const started = await call(ROUTES.applyAgent, handlers.applyAgent, { params, body });
    expect(started).toMatchObject({ status: 202, body: { status: 'queued', finished_at: null, resources: [] } });
    const { operation_id } = (started as { body: { operation_id: string } }).body;
    await bench.settle();
    const cancel = { params: { operation_id } };
    expect(await call(ROUTES.cancelOperation, handlers.cancelOperation, cancel)).toMatchObject({
      status: 202,
      body: { status: 'running' },
    });
    agent.diligent = true;
    await bench.settle();
    expect((await rejection(call(ROUTES.cancelOperation, handlers.cancelOperation, cancel))).code).toBe(
      'operation_finished',
    );
  });

  it('refuse an apply of a plan that the machine has left behind, with the operation that says so', async () => {
    const bench = await openBench();
    const agent = await bench.agent('1');
    const handlers = handlersOf(bench);
    await bench.upload('site', { '/a': '' });
    const params = { node_id: agent.nodeId };
    const { plan_hash } = await bench.plan(agent, ['site']);
    agent.machine.set('/a', '"other"');
    const body = { modules: ['site'], expect: plan_hash };
    const fault = await rejection(bench.while(call(ROUTES.applyAgent, handlers.applyAgent, { params, body })));
    expect(fault).toMatchObject({ code: 'plan_stale', data: { changed: 'machine' } });
    const refused = await bench.engine.operations.get(String(fault.data?.operation_id));
    expect(refused).toMatchObject({ status: 'failed', error: { code: 'plan_stale' } });
  });
});
