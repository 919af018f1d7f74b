/** Handlers of the believed state and of operations. */
import { OPERATION_LIST_LIMIT, type operationRoutes } from '../../src/contract/operations.js';
import { clampLimit } from '../../src/contract/shapes.js';
import type { Handler, HandlersFor } from '../http/handler.js';
import type { Applies } from './applies.js';
import type { OperationReader } from './operation-reader.js';
import type { StateReader } from './state.js';

export interface OperationServices {
  readonly applies: Applies;
  readonly operations: OperationReader;
  readonly state: StateReader;
}

type Routes = typeof operationRoutes;

export const operationHandlers = ({ applies, operations, state }: OperationServices): HandlersFor<Routes> => ({
  getState: async ({ params }) => ({ status: 200, body: await state.get(params.node_id) }),
  listAgentOperations: async ({ params, query }) => ({
    status: 200,
    body: await operations.list(pageOf(query), params.node_id),
  }),
  listOperations: async ({ query }) => ({ status: 200, body: await operations.list(pageOf(query)) }),
  getOperation: getOperation(operations),
  getOperationOutput: async ({ params: { node_id, operation_id } }) => ({
    status: 200,
    body: { operation_id, output: await operations.output(node_id, operation_id) },
  }),
  cancelOperation: async ({ params, context }) => {
    await applies.cancel(params.operation_id, context);
    return { status: 202, body: await operations.get(params.operation_id) };
  },
});

const getOperation =
  (operations: OperationReader): Handler<Routes['getOperation']> =>
  async ({ params, signal, stream }) => {
    const { operation_id } = params;
    if (stream !== null) {
      await operations.get(operation_id);
      await stream({ event: 'started', operation_id });
      for await (const resource of operations.follow(operation_id, { signal, isPatient: true })) {
        await stream({ event: 'resource', resource });
      }
      const result = await operations.result(operation_id, []);
      await stream({ event: 'result', result });
    }
    return { status: 200, body: await operations.detail(operation_id) };
  };

type ListQuery = Parameters<Handler<Routes['listOperations']>>[0]['query'];

const pageOf = ({ limit, offset, status, rollout }: ListQuery) => ({
  limit: clampLimit(limit, OPERATION_LIST_LIMIT.standard, OPERATION_LIST_LIMIT.maximum),
  offset: offset ?? 0,
  status: status ?? null,
  rollout: rollout ?? null,
});
