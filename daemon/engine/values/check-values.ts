/** Checks values of inputs against the stored modules. */
import { checkSet, type SetProblem } from '../../../src/language/inputs/check-set.js';
import type { ValueSet } from '../../../src/language/inputs/value-set.js';
import { getMeta } from '../../database/meta.js';
import type { Queryable } from '../../database/schema.js';
import { inSlices } from '../lanes.js';
import type { CurrentModules } from '../modules/current-modules.js';
import { MODULES_REVISION } from '../modules/module-store.js';

/** Returns the mistakes of values: unknown modules as warnings, unknown inputs and wrong values as errors. */
export async function checkValues(
  db: Queryable,
  current: CurrentModules,
  set: Pick<ValueSet, 'entries'>,
): Promise<readonly SetProblem[]> {
  const names = [...new Set(set.entries.flatMap((entry) => Object.keys(entry.set)))];
  const revision = await getMeta(db, MODULES_REVISION);
  const modules = await current.find(db, await current.present(db, names, revision), { revision });
  return inSlices(checkSet(set, new Map(modules.map(({ name, compiled }) => [name, compiled]))));
}
