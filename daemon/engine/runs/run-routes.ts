/** HTTP handlers of plan, apply and drift. */

import type { BodyOf } from '../../../src/contract/route.js';
import { DRIFT_LIST_LIMIT, type RunEvent, type runRoutes } from '../../../src/contract/runs.js';
import { clampLimit } from '../../../src/contract/shapes.js';
import { Fault } from '../../../src/kernel/fault.js';
import type { Handler, HandlersFor } from '../../http/handler.js';
import { pageFrom } from '../../http/query-string.js';
import { type Applies, refuseStale } from '../applies/applies.js';
import { limitsOf } from '../applies/apply-limits.js';
import type { PlanLimits } from '../applies/plan-limits.js';
import type { Plans } from '../applies/plans.js';
import type { Verifications } from '../applies/verifications.js';
import type { Drift } from '../drift/drift.js';
import type { CurrentModules } from '../modules/current-modules.js';
import type { OperationReader } from '../operations/operation-reader.js';
import type { ReadOneOff } from '../values/one-off-request.js';

interface RunServices {
  readonly plans: Plans;
  readonly planLimits: PlanLimits;
  /** Parses the modules that a request carries as text. */
  readonly sources: CurrentModules['read'];
  /** Reads the values that a request brings with it. */
  readonly oneOff: ReadOneOff;
  readonly applies: Applies;
  readonly operations: OperationReader;
  readonly drift: Drift;
  readonly verifications: Verifications;
}

type Routes = typeof runRoutes;

export const runHandlers = (services: RunServices): HandlersFor<Routes> => ({
  planAgent: planAgent(services),
  applyAgent: applyAgent(services),
  verifyAgent: async ({ params, context, signal }) => ({
    status: 200,
    body: await services.verifications.run({ nodeId: params.node_id, signal, context }),
  }),
  ...driftHandlers(services.drift),
});

const planAgent =
  ({ plans, planLimits, sources, oneOff }: RunServices): Handler<Routes['planAgent']> =>
  async ({ params, body, context, rights, signal, stream }) => {
    refuseBoth(body);
    const bringsContent = (body.sources?.length ?? 0) > 0 || hasValues(body) || body.to != null;
    await planLimits.check(params.node_id, { modules: body.modules, bringsContent }, rights);
    let written = Promise.resolve();
    const write = (line: RunEvent) => {
      written = written.then(() => stream?.(line));
    };
    const sent = await sources(body.sources ?? [], context.actor.id);
    const result = await plans.plan(
      {
        nodeId: params.node_id,
        modules: body.modules,
        to: body.to ?? null,
        sent,
        oneOff: await oneOff(body.values, sent, context.actor.id),
        signal,
        onStarted: () => write({ event: 'started', operation_id: null }),
        onResult: (resource) => write({ event: 'resource', resource }),
      },
      context,
    );
    write({ event: 'result', result });
    await written;
    return { status: 200, body: result };
  };

const applyAgent =
  ({ applies, operations, sources, oneOff }: RunServices): Handler<Routes['applyAgent']> =>
  async ({ params, body, context, signal, stream }) => {
    refuseBoth(body);
    const sent = await sources(body.sources ?? [], context.actor.id);
    const { operation, ...remarks } = await applies.start(
      {
        nodeId: params.node_id,
        modules: body.modules,
        sent,
        oneOff: await oneOff(body.values, sent, context.actor.id),
        to: body.to ?? null,
        limits: limitsOf(body),
        expect: body.expect ?? null,
      },
      context,
    );
    if (body.wait === false) return { status: 202, body: operations.begun(operation, remarks) };
    await stream?.({ event: 'started', operation_id: operation.id });
    const result = await operations.finished(operation, {
      signal,
      ignoresSilence: false,
      onAwaiting: async (left_secs) => stream?.({ event: 'awaiting', left_secs }),
      onResult: async (resource) => stream?.({ event: 'resource', resource }),
      remarks,
    });
    refuseStale(result);
    await stream?.({ event: 'result', result });
    return { status: 200, body: result };
  };

/** Throws `bad_request` for a request that names an earlier operation and modules or values. */
function refuseBoth({ to, modules, sources, values }: BodyOf<Routes['planAgent']>): void {
  if (to == null) return;
  if (hasValues({ values })) {
    throw new Fault('bad_request', '`to` takes an earlier desired state with its values, and so it excludes `values`', {
      hint: 'send either `to` or `values`',
    });
  }
  if (modules.length + (sources?.length ?? 0) === 0) return;
  throw new Fault('bad_request', '`to` takes the desired state of an earlier operation, and so it excludes modules', {
    hint: 'send either `to`, or `modules` and `sources`',
  });
}

const hasValues = ({ values }: Pick<BodyOf<Routes['planAgent']>, 'values'>): boolean =>
  (values?.set?.length ?? 0) + (values?.files?.length ?? 0) > 0;

type DriftRoutes = Pick<Routes, 'checkDrift' | 'listAgentDrift' | 'getLatestDrift' | 'listDrift' | 'getDrift'>;

const driftHandlers = (drift: Drift): HandlersFor<DriftRoutes> => ({
  checkDrift: async ({ params, context, signal }) => ({
    status: 200,
    body: await drift.check({ nodeId: params.node_id, signal, requestedBy: context }),
  }),
  listAgentDrift: async ({ params, query, rights }) => {
    const page = { ...pageOf(query), rights };
    const { items, headers } = pageFrom(await drift.listOfAgent(params.node_id, page), {
      path: `/agents/${params.node_id}/drift`,
      query: { ...query, limit: page.limit - 1 },
      cursorOf: ({ drift_id }) => drift_id,
    });
    return { status: 200, body: { records: items }, headers };
  },
  getLatestDrift: async ({ params, rights }) => ({ status: 200, body: await drift.latest(params.node_id, rights) }),
  listDrift: async ({ query, rights }) => {
    const page = { ...pageOf(query), rights };
    const { items, headers } = pageFrom(await drift.list({ ...page, filter: query.filter ?? null }), {
      path: '/drift',
      query: { ...query, limit: page.limit - 1 },
      cursorOf: ({ drift_id }) => drift_id,
    });
    return { status: 200, body: { records: items }, headers };
  },
  getDrift: async ({ params, rights }) => ({ status: 200, body: await drift.get(params.drift_id, rights) }),
});

type DriftQuery = Parameters<Handler<Routes['listDrift']>>[0]['query'];

/** Requests one record more than the page holds, to detect a next page. */
const pageOf = ({ limit, status, cursor }: DriftQuery) => ({
  limit: clampLimit(limit, DRIFT_LIST_LIMIT.standard, DRIFT_LIST_LIMIT.maximum) + 1,
  status: status ?? null,
  before: cursor ?? null,
});
