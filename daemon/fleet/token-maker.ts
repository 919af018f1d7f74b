/** Whether who made an enrolment token may still vouch for agents. */
import type { EnrolmentTokenRow } from '../store/enrolment-tokens.js';
import { findActiveOperator } from '../store/operators.js';
import type { Queryable } from '../store/queryable.js';

/** Returns whether the operator who made the token is an admin. The removal of an operator revokes that operator's tokens. */
export async function isMakerAdmin(db: Queryable, { created_by }: EnrolmentTokenRow): Promise<boolean> {
  return (await findActiveOperator(db, created_by))?.role === 'admin';
}
