/** Stores the values that applies and rollouts bring with them, once by their hash as long as one of these refers to them. */
import type { OneOffTexts } from '../../../src/contract/one-off-values.js';
import { canonicalJson } from '../../../src/kernel/json.js';
import type { OneOffValues } from '../../../src/language/inputs/one-off-values.js';
import { jsonColumns } from '../../database/json-columns.js';
import type { Queryable } from '../../database/schema.js';
import { digestOf } from '../modules/text-parser.js';

/** One-off values of a request. */
export interface GivenOneOff {
  /** Hash of both members below. */
  readonly sha256: string;
  readonly texts: OneOffTexts;
  readonly read: OneOffValues;
}

const columns = jsonColumns<Pick<GivenOneOff, 'texts' | 'read'>>({ texts: true, read: true });

export const givenOneOff = (texts: OneOffTexts, read: OneOffValues): GivenOneOff => ({
  sha256: digestOf(canonicalJson({ texts, read })),
  texts,
  read,
});

/** Stores values unless they are there. */
export async function putOneOffValues(tx: Queryable, values: GivenOneOff): Promise<void> {
  await tx
    .insertInto('one_off_values')
    .values(columns.encode(values))
    .onConflict((conflict) => conflict.column('sha256').doNothing())
    .execute();
}

/** Returns stored values; null for no hash. Throws an Error for an unknown one. */
export async function findOneOffValues(db: Queryable, sha256: string | null): Promise<GivenOneOff | null> {
  if (sha256 === null) return null;
  const query = db.selectFrom('one_off_values').selectAll().where('sha256', '=', sha256);
  return columns.decode(await query.executeTakeFirstOrThrow());
}

/** Deletes the values that no operation and no rollout refers to. */
export async function deleteUnusedOneOffValues(tx: Queryable): Promise<void> {
  await tx
    .deleteFrom('one_off_values')
    .where(({ exists, not, selectFrom }) =>
      not(
        exists(
          selectFrom('operations')
            .select('operation_id')
            .whereRef('operations.values_sha256', '=', 'one_off_values.sha256'),
        ),
      ),
    )
    .where(({ exists, not, selectFrom }) =>
      not(
        exists(
          selectFrom('rollouts').select('rollout_id').whereRef('rollouts.values_sha256', '=', 'one_off_values.sha256'),
        ),
      ),
    )
    .execute();
}
