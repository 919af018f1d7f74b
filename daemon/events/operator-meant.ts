/** Finds the operator that a filter means. Names pass from one operator to another, so that a name alone could mix the acts of two. */
import { Fault } from '../../src/kernel/fault.js';
import { findActiveOperatorByName, findOperator, operatorIdsOfName } from '../store/operators.js';
import type { Queryable } from '../store/queryable.js';

/**
 * Returns the ID of the operator with this ID; else of the active operator with this username; else of the only operator who
 * ever had it. Returns the text itself when no operator ever had it. Throws `invalid_filter` when several had it.
 */
export async function operatorIdMeant(db: Queryable, nameOrId: string): Promise<string> {
  if ((await findOperator(db, nameOrId)) !== null) return nameOrId;
  const current = await findActiveOperatorByName(db, nameOrId);
  if (current !== null) return current.operator_id;
  const [first, ...others] = await operatorIdsOfName(db, nameOrId);
  if (first === undefined) return nameOrId;
  if (others.length > 0) throw ambiguous(nameOrId, [first, ...others]);
  return first;
}

const ambiguous = (name: string, ids: readonly string[]): Fault =>
  new Fault('invalid_filter', `${ids.length} operators had the name ${name}, and none has it now: ${ids.join(', ')}`, {
    hint: `give the ID of the one you mean: operator=${ids[0]}, on the command line --operator ${ids[0]}`,
    data: { parameter: 'operator', operator_ids: [...ids] },
  });
