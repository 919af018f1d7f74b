/** People and pipelines that may log in. */
import type { operatorRoutes } from '../../src/contract/operators.js';
import type { Auth } from '../auth/auth.js';
import { parseHexKey } from '../auth/hex-key.js';
import type { HandlersFor } from './handler.js';

export const operatorHandlers = ({ operators }: Pick<Auth, 'operators'>): HandlersFor<typeof operatorRoutes> => ({
  listOperators: async ({ query }) => ({
    status: 200,
    body: [...(await operators.list(query.include_removed ?? false))],
  }),

  addOperator: async ({ body: { public_key, username, role }, context }) => ({
    status: 201,
    body: await operators.add({ publicKey: parseHexKey(public_key), username, role }, context),
  }),

  getOperator: async ({ params }) => ({ status: 200, body: await operators.get(params.operator_id) }),

  removeOperator: async ({ params, context }) => {
    await operators.remove(params.operator_id, context);
    return { status: 204, body: undefined };
  },
});
