import { describe, expect, it } from 'vitest';
import { authorize } from '../../daemon/auth/auth-routes.js';
import { CONTRACT } from '../../src/contract/contract.js';
import type { ROLES } from '../../src/contract/operators.js';
import type { RouteSpec } from '../../src/contract/route.js';
import { isFault } from '../../src/kernel/fault.js';

const outcome = (access: RouteSpec['access'], role: (typeof ROLES)[number] | null): string => {
  try {
    authorize(access, role && { role, username: 'alice' });
    return 'allowed';
  } catch (error) {
    return isFault(error) ? error.code : 'another error';
  }
};

describe('access', () => {
  it.each([
    ['public', null, 'allowed'],
    ['viewer', null, 'unauthenticated'],
    ['operator', null, 'unauthenticated'],
    ['admin', null, 'unauthenticated'],
    ['public', 'viewer', 'allowed'],
    ['viewer', 'viewer', 'allowed'],
    ['operator', 'viewer', 'role_forbidden'],
    ['admin', 'viewer', 'admin_required'],
    ['viewer', 'operator', 'allowed'],
    ['operator', 'operator', 'allowed'],
    ['admin', 'operator', 'admin_required'],
    ['viewer', 'admin', 'allowed'],
    ['operator', 'admin', 'allowed'],
    ['admin', 'admin', 'allowed'],
  ] as const)('to a route for %s is for %s: %s', (access, role, expected) => {
    expect(outcome(access, role)).toBe(expected);
  });

  it('lets a viewer read, mark as read, log out and replace the own key, and write nothing else', () => {
    const routes: readonly RouteSpec[] = Object.values(CONTRACT);
    const closed = routes.filter(({ access }) => access !== 'public');
    const allowed = closed.filter(({ access }) => outcome(access, 'viewer') === 'allowed');
    const writes = allowed.filter(({ method }) => method !== 'GET').map(({ id }) => id);
    expect(writes).toEqual(['endSession', 'rotateOperatorKey', 'readAllNotifications', 'readNotification']);
    const refusedReads = closed.filter(
      ({ method, access }) => method === 'GET' && outcome(access, 'viewer') !== 'allowed',
    );
    // Captured output, terminals and what was shown on them are refused to viewers.
    const terminals = ['listTerminals', 'getTerminal', 'getTranscript', 'searchTerminals'];
    expect(refusedReads.map(({ id }) => id)).toEqual(['listEnrolmentTokens', 'getOperationOutput', ...terminals]);
  });

  it('names who is refused and what to do', () => {
    expect(() => authorize('admin', { role: 'operator', username: 'bob' })).toThrow(
      expect.objectContaining({
        message: 'bob has the role operator, and this needs an admin',
        hint: 'ask an admin to do it',
      }),
    );
  });
});
