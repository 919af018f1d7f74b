/** Who may call a route. */
import type { Operator } from '../../src/contract/operators.js';
import type { Access } from '../../src/contract/route.js';
import { unreachable } from '../../src/kernel/exhaustive.js';
import { Fault } from '../../src/kernel/fault.js';

export const unauthenticated = (): Fault =>
  new Fault('unauthenticated', 'the request has no valid session token', { hint: 'log in with: orch login' });

/**
 * @param operator whose token the request carries, null without a valid one
 * @throws Fault `unauthenticated`, `role_forbidden`, `admin_required`
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
      unreachable(access);
  }
}
