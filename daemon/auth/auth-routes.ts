/** Handlers of the login, session and operator routes, and the check of roles. */
import type { authRoutes } from '../../src/contract/auth.js';
import type { Operator, operatorRoutes } from '../../src/contract/operators.js';
import type { Access } from '../../src/contract/route.js';
import { assertNever, Fault } from '../../src/kernel/fault.js';
import type { HandlersFor } from '../http/handler.js';
import type { Auth } from './auth.js';
import { parseHexKey } from './login.js';
import { unauthenticated } from './sessions.js';

export const authHandlers = ({
  login,
  sessions,
}: Pick<Auth, 'login' | 'sessions'>): HandlersFor<typeof authRoutes> => ({
  createChallenge: async ({ body, context }) => ({
    status: 200,
    body: { nonce: await login.challenge(body.public_key, context) },
  }),

  verifyChallenge: async ({ body, context }) => {
    const { token, expiresAt } = await login.verify(body.public_key, body.signature, context);
    return { status: 200, body: { token, expires_at: expiresAt } };
  },

  getSession: async ({ token }) => {
    const session = await sessions.authenticate(token);
    if (!session) throw unauthenticated();
    return { status: 200, body: { operator: session.operator, expires_at: session.expiresAt } };
  },

  endSession: async ({ token, context }) => {
    await sessions.revoke(token, context);
    return { status: 204, body: undefined };
  },
});

/** Handlers for operators: people and pipelines that may log in. */
export const operatorHandlers = ({ operators }: Pick<Auth, 'operators'>): HandlersFor<typeof operatorRoutes> => ({
  listOperators: async ({ query }) => ({
    status: 200,
    body: [...(await operators.list(query.include_removed ?? false))],
  }),

  addOperator: async ({ body: { public_key, username, role }, context }) => ({
    status: 201,
    body: await operators.add({ publicKey: parseHexKey(public_key), username, role }, context),
  }),

  rotateOperatorKey: async ({ body, operator, context }) => ({
    status: 200,
    body: await operators.rotateKey(operator, { publicKey: parseHexKey(body.public_key), proof: body.proof }, context),
  }),

  getOperator: async ({ params }) => ({ status: 200, body: await operators.get(params.operator_id) }),

  removeOperator: async ({ params, context }) => {
    await operators.remove(params.operator_id, context);
    return { status: 204, body: undefined };
  },
});

/**
 * Checks that a route with this `access` may be called; `operator` is null without a valid session. Throws
 * `unauthenticated`, `role_forbidden`, `admin_required`.
 */
export function authorize(access: Access, operator: Pick<Operator, 'role' | 'username'> | null): void {
  if (access === 'public') return;
  if (operator === null) throw unauthenticated();
  switch (access) {
    case 'viewer':
      return;
    case 'operator':
      if (operator.role !== 'viewer') return;
      throw new Fault('role_forbidden', `${operator.username} has the role viewer, which may only look`, {
        hint: 'ask an admin to add you with the role operator',
      });
    case 'admin':
      if (operator.role === 'admin') return;
      throw new Fault('admin_required', `${operator.username} has the role ${operator.role}, and this needs an admin`, {
        hint: 'ask an admin to do it',
      });
    default:
      assertNever(access);
  }
}
