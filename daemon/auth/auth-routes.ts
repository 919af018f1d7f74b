/** Handlers of the login, session and operator routes, and the check of roles. */
import type { authRoutes } from '../../src/contract/auth.js';
import { NAMED_RIGHTS } from '../../src/contract/named-rights.js';
import type { Operator, operatorRoutes } from '../../src/contract/operators.js';
import { RIGHTS_OF_PEOPLE, rolesWith } from '../../src/contract/rights.js';
import type { Access } from '../../src/contract/route.js';
import { Fault } from '../../src/kernel/fault.js';
import { type Machine, notForRobots, notGranted, type Rights } from '../core/rights.js';
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

interface RequiredMachines {
  /** Returns the machine. Throws `agent_not_found`, also for one that the reader may not read. */
  require(reader: Rights, nodeId: string): Promise<Machine>;
}

/** Handlers for operators: people and pipelines that may log in. */
export const operatorHandlers = ({
  operators,
  machines,
}: Pick<Auth, 'operators'> & { readonly machines: RequiredMachines }): HandlersFor<typeof operatorRoutes> => ({
  listOperators: async ({ query }) => ({
    status: 200,
    body: [...(await operators.list(query.include_removed ?? false))],
  }),

  addOperator: async ({ body: { public_key, username, role, grants, expires_at, robot }, context }) => ({
    status: 201,
    body: await operators.add(
      {
        publicKey: parseHexKey(public_key),
        ...{ username, role, grants },
        expiresAt: expires_at,
        isRobot: robot ?? false,
      },
      context,
    ),
  }),

  setOperatorGrants: async ({ params, body: { role, grants, expires_at }, context }) => ({
    status: 200,
    body: await operators.setRights(params.operator_id, { role, grants, expiresAt: expires_at }, context),
  }),

  rotateOperatorKey: async ({ body, operator, context }) => ({
    status: 200,
    body: await operators.rotateKey(operator, { publicKey: parseHexKey(body.public_key), proof: body.proof }, context),
  }),

  getOperator: async ({ params }) => ({ status: 200, body: await operators.get(params.operator_id) }),

  getOperatorRights: async ({ params, query, rights: reader }) => {
    const { operator_id, username, role } = await operators.get(params.operator_id);
    const node = query.node ?? null;
    const machine = node === null ? null : await machines.require(reader, node);
    const held = await operators.rightsOf(operator_id);
    const { rights, tagKeys } = held?.on(machine) ?? { rights: [], tagKeys: [] };
    const body = { operator_id, username, role, node_id: node, rights: [...rights], tag_keys: [...tagKeys] };
    return { status: 200, body };
  },

  removeOperator: async ({ params, context }) => {
    await operators.remove(params.operator_id, context);
    return { status: 204, body: undefined };
  },
});

/**
 * Checks that a route with this `access` may be called on some machine; `session` is null without a valid one. Throws
 * `unauthenticated`, `role_forbidden`, `admin_required`, `not_granted`.
 */
export function authorize(access: Access, session: Caller | null): void {
  if (access === 'public') return;
  if (session === null) throw unauthenticated();
  const { operator, rights } = session;
  const { username, role } = operator;
  const isNamed = NAMED_RIGHTS.has(access);
  if (access === 'admin' ? role !== 'admin' : isNamed && !rights.permits(access)) {
    throw new Fault('admin_required', `${username} has the role ${role}, and this needs an admin`, {
      hint: isNamed ? 'ask an admin to do it, or to permit it to you' : 'ask an admin to do it',
    });
  }
  if (access === 'admin') return;
  if (operator.robot === true && RIGHTS_OF_PEOPLE.includes(access)) {
    throw notForRobots(username, access);
  }
  if (!rights.permits(access)) {
    // Viewers are in every fleet, and most fleets know no roles between viewer and operator.
    const [may, wanted] =
      role === 'viewer'
        ? ['may only look', 'another role']
        : [`does not have the right ${access}`, `the role ${rolesWith(access).at(-1)}`];
    throw new Fault('role_forbidden', `${username} has the role ${role}, which ${may}`, {
      hint: `ask an admin to give you ${wanted}`,
    });
  }
  if (!rights.has(access)) throw notGranted(access, null);
}

type Caller = {
  readonly operator: Pick<Operator, 'robot' | 'role' | 'username'>;
  readonly rights: Pick<Rights, 'has' | 'permits'>;
};
