/** Whether who made an enrolment token may still vouch for agents. */
import type { EnrolmentTokenRow } from '../store/enrolment-tokens.js';
import { findActiveOperator } from '../store/operators.js';
import type { Queryable } from '../store/queryable.js';

/** A token ends with its maker's admin role, and does not come back when the operator is added anew. */
export async function isMakerAdmin(db: Queryable, { created_by, created_at }: EnrolmentTokenRow): Promise<boolean> {
  const maker = await findActiveOperator(db, created_by);
  return maker !== null && maker.role === 'admin' && maker.added_at <= created_at;
}
