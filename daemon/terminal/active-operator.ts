/** Whoever asks for a terminal may have been removed while the request was on its way. */
import { Fault } from '../../src/kernel/fault.js';
import { findActiveOperator } from '../auth/operator-store.js';
import type { Queryable } from '../database/schema.js';

export const isActiveOperator = async (db: Queryable, operatorId: string): Promise<boolean> =>
  (await findActiveOperator(db, operatorId)) !== null;

/** Throws `unauthenticated`. */
export async function requireOperator(db: Queryable, operatorId: string): Promise<void> {
  if (!(await isActiveOperator(db, operatorId))) throw operatorRemoved();
}

export const operatorRemoved = (): Fault =>
  new Fault('unauthenticated', 'the operator was removed', { hint: 'ask an admin to be added again' });
