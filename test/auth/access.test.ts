import { describe, expect, it } from 'vitest';
import { authorize } from '../../daemon/auth/auth-routes.js';
import { Rights } from '../../daemon/core/rights.js';
import { CONTRACT } from '../../src/contract/contract.js';
import { RIGHTS, ROLES, type Role, rightsOfRole } from '../../src/contract/rights.js';
import { grantUse, type RouteSpec } from '../../src/contract/route.js';
import { isFault } from '../../src/kernel/fault.js';

const sessionOf = (role: Role) => ({ operator: { role, username: 'alice' }, rights: new Rights(role, null) });

const outcome = (access: RouteSpec['access'], role: Role | null): string => {
  try {
    authorize(access, role && sessionOf(role));
    return 'allowed';
  } catch (error) {
    return isFault(error) ? error.code : 'another error';
  }
};

const ROUTES: readonly RouteSpec[] = Object.values(CONTRACT);
const CLOSED = ROUTES.filter(({ access }) => access !== 'public');

describe('access', () => {
  it('needs a session, except to public routes', () => {
    expect(outcome('public', null)).toBe('allowed');
    expect(new Set(CLOSED.map(({ access }) => outcome(access, null)))).toEqual(new Set(['unauthenticated']));
  });

  it.each(ROLES)('of the role %s is to the routes of its rights', (role) => {
    for (const right of RIGHTS) {
      const refused = right === 'enroll' ? 'admin_required' : 'role_forbidden';
      expect(outcome(right, role)).toBe(rightsOfRole(role).has(right) ? 'allowed' : refused);
    }
    expect(outcome('admin', role)).toBe(role === 'admin' ? 'allowed' : 'admin_required');
  });

  it('lets a viewer read, mark as read, log out and replace the own key, and write nothing else', () => {
    const allowed = CLOSED.filter(({ access }) => outcome(access, 'viewer') === 'allowed');
    const writes = allowed.filter(({ method }) => method !== 'GET').map(({ id }) => id);
    expect(writes).toEqual(['endSession', 'rotateOperatorKey', 'readAllNotifications', 'readNotification']);
    const refusedReads = CLOSED.filter(
      ({ method, access }) => method === 'GET' && outcome(access, 'viewer') !== 'allowed',
    );
    // Captured output, terminals and what was shown on them are refused to viewers.
    const terminals = ['listTerminals', 'getTerminal', 'getTranscript', 'searchTerminals'];
    expect(refusedReads.map(({ id }) => id)).toEqual(['listEnrolmentTokens', 'getOperationOutput', ...terminals]);
  });

  it('lets planners plan and deployers apply, and operators do all but what admins do', () => {
    const writesOf = (role: Role) =>
      CLOSED.filter(({ method, access }) => method !== 'GET' && outcome(access, role) === 'allowed').map(
        ({ access, method, path }) => `${access} ${method} ${path}`,
      );
    const plans = writesOf('planner').filter((write) => !write.startsWith('read '));
    expect(plans.every((write) => /^(plan|verify) POST \/.*(plan|verify|drift|facts)$/.test(write))).toBe(true);
    const more = writesOf('deployer').filter((write) => !writesOf('planner').includes(write));
    expect(new Set(more.map((write) => write.split(' ')[0]))).toEqual(new Set(['apply', 'cancel']));
    const admins = CLOSED.filter(({ access }) => outcome(access, 'operator') !== 'allowed');
    expect(new Set(admins.map(({ access }) => access))).toEqual(new Set(['admin', 'enroll']));
  });

  it('names who is refused and what to do', () => {
    expect(() => authorize('admin', sessionOf('operator'))).toThrow(
      expect.objectContaining({
        message: 'alice has the role operator, and this needs an admin',
        hint: 'ask an admin to do it',
      }),
    );
    expect(() => authorize('apply', sessionOf('planner'))).toThrow(
      expect.objectContaining({
        message: 'alice has the role planner, which does not have the right apply',
        hint: 'ask an admin to give you the role deployer',
      }),
    );
    expect(() => authorize('apply', sessionOf('viewer'))).toThrow(
      expect.objectContaining({
        message: 'alice has the role viewer, which may only look',
        hint: 'ask an admin to give you another role',
      }),
    );
  });

  it('of operators with grants is decided for every route', () => {
    const idsOf = (use: ReturnType<typeof grantUse>) =>
      CLOSED.filter((route) => route.access !== 'admin' && grantUse(route) === use).map(({ id }) => id);
    // What shows or changes more than some machines, and what shows the same to everybody.
    expect(idsOf('unlimited')).toMatchInlineSnapshot(`
      [
        "discover",
        "getOwnMetrics",
        "listChannels",
        "getChannel",
        "listDeliveries",
      ]
    `);
    expect(idsOf('shared')).toMatchInlineSnapshot(`
      [
        "getSession",
        "endSession",
        "listOperators",
        "rotateOperatorKey",
        "getOperator",
        "listModules",
        "getModule",
        "listModuleRevisions",
        "uploadFile",
        "getFile",
        "listValueSets",
        "getValueSet",
        "listValueSetRevisions",
        "listAssignments",
        "listSecrets",
        "getSecret",
        "listMaintenanceWindows",
        "getMaintenanceWindow",
        "getAuditRetention",
        "verifyAudit",
      ]
    `);
  });
});
