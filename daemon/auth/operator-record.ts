/** An operator as the API shows it, and as a party of events. */
import { type Operator, ROLES, type Role } from '../../src/contract/operators.js';
import { toSeconds } from '../../src/kernel/clock.js';
import type { Party } from '../events/domain-event.js';
import type { OperatorRow } from '../store/operators.js';

export const isRole = (text: string): text is Role => ROLES.some((role) => role === text);

export function operatorOfRow(row: OperatorRow): Operator {
  return {
    operator_id: row.operator_id,
    username: row.username,
    // A role that this program does not know gives the least rights.
    role: isRole(row.role) ? row.role : 'viewer',
    bootstrap: row.bootstrap === 1,
    added_at: toSeconds(row.added_at),
    added_by: row.added_by,
    removed_at: row.removed_at === null ? null : toSeconds(row.removed_at),
    removed_by: row.removed_by,
    public_key: row.public_key,
  };
}

export const partyOfOperator = ({ operator_id, username }: Pick<OperatorRow, 'operator_id' | 'username'>): Party => ({
  id: operator_id,
  name: username,
  type: 'operator',
});
