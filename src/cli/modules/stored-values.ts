/** The values of inputs that an orchestrator keeps, for resolutions on this machine. */
import type { ApiClient } from '../../client/api-client.js';
import type { Assignment } from '../../contract/assignments.js';
import type { StoredValueSet } from '../../contract/values.js';
import { Fault, isFault } from '../../kernel/fault.js';
import type { GivenValues } from '../../language/inputs/choose.js';
import { fileOf, type NamedSet, valuesOfSets, withAssignments } from '../../language/inputs/fleet-values.js';
import { parseValueSet } from '../../language/inputs/value-set.js';

/** Returns the value sets; none for an older orchestrator, which knows none. Throws `invalid_values` for one that this version rejects. */
export async function storedSets(api: ApiClient, signal: AbortSignal): Promise<readonly NamedSet[]> {
  const sets: NamedSet[] = [];
  for (const { name, content } of await storedValueSets(api, signal)) {
    const { set, diagnostics } = parseValueSet(content);
    if (set === null) {
      const [first] = diagnostics;
      throw new Fault(
        'invalid_values',
        `${fileOf(name)}, line ${first?.line ?? 1}: ${first?.message ?? 'it is no value set'}`,
      );
    }
    sets.push({ name, set });
  }
  return sets;
}

/** Returns the value sets with their texts; none for an older orchestrator. */
export async function storedValueSets(api: ApiClient, signal: AbortSignal): Promise<readonly StoredValueSet[]> {
  const sets: StoredValueSet[] = [];
  for (const name of await namesOfSets(api, signal)) {
    sets.push(await api.call('getValueSet', { params: { name }, signal }));
  }
  return sets;
}

async function namesOfSets(api: ApiClient, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return (await api.call('listValueSets', { signal })).map(({ name }) => name);
  } catch (error) {
    if (isFault(error, 'not_found')) return [];
    throw error;
  }
}

/** Returns the values of an agent. @param assignments those that match it */
export const valuesOf = (sets: readonly NamedSet[], assignments: readonly Assignment[]): GivenValues =>
  withAssignments(
    valuesOfSets(sets),
    assignments.map(({ name, values = null }) => ({ name, values })),
  );
