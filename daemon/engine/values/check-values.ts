/** Checks values of inputs against the stored modules, and refuses wrong ones. */
import { Fault, type FaultDetail } from '../../../src/kernel/fault.js';
import { checkSet, type SetProblem } from '../../../src/language/inputs/check-set.js';
import { modulesSetBy, type ValueSet } from '../../../src/language/inputs/value-set.js';
import { getMeta } from '../../database/meta.js';
import type { Queryable } from '../../database/schema.js';
import type { CurrentModules } from '../modules/current-modules.js';
import { MODULES_REVISION } from '../modules/module-store.js';
import { inSlices } from '../slices.js';

/** Returns the mistakes of values: unknown modules as warnings, unknown inputs and wrong values as errors. */
export async function checkValues(
  db: Queryable,
  current: CurrentModules,
  set: Pick<ValueSet, 'entries'>,
): Promise<readonly SetProblem[]> {
  const names = [...modulesSetBy(set.entries)];
  const revision = await getMeta(db, MODULES_REVISION);
  const modules = await current.find(db, await current.present(db, names, revision), { revision });
  return inSlices(checkSet(set, new Map(modules.map(({ name, compiled }) => [name, compiled]))));
}

/** Returns the fault of wrong values. @param label names the document */
export function invalidValues(label: string, errors: readonly FaultDetail[]): Fault {
  const [first] = errors;
  const place = first?.line === undefined ? '' : `, line ${first.line}`;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  return new Fault('invalid_values', `${label}${place}: ${first?.message ?? 'it is no value set'}${more}`, {
    hint: 'correct these lines; nothing was stored',
    errors,
  });
}
