/** Whether an operator may store a value set: each entry that changes has to concern machines of the operator alone, now and later. */
import { isDeepStrictEqual } from 'node:util';
import { Fault } from '../../../src/kernel/fault.js';
import { showClause } from '../../../src/language/clause.js';
import type { ValueEntry, ValueSet } from '../../../src/language/inputs/value-set.js';
import { selectorOfClause } from '../../../src/language/selector.js';
import { notGranted, type Rights } from '../../core/rights.js';

/**
 * Throws `not_granted` unless the operator holds the rights to values and to apply on every machine that an entry which changes could
 * ever match, whatever modules it gets. @param after null for the removal
 */
export function refuseBeyond(rights: Rights, before: ValueSet | null, after: ValueSet | null): void {
  if (!rights.isLimited) return;
  const rank = (set: ValueSet | null) => set?.rank ?? null;
  // The ranking decides for all machines.
  if (!isDeepStrictEqual(rank(before), rank(after)))
    throw notGranted('values', 'every machine, for which "rank" counts');
  // Of several entries for a machine the order counts as well.
  const [kept, wanted] = [before, after].map((set) => (set?.entries ?? []).filter((one) => missing(rights, one)));
  const texts = kept?.map(textOf) ?? [];
  const given = wanted?.map(textOf) ?? [];
  const index = Math.max(texts.length, given.length);
  for (let place = 0; place < index; place += 1) {
    if (texts[place] === given[place]) continue;
    const entry = wanted?.[place] ?? kept?.[place];
    if (entry !== undefined) throw beyond(rights, entry);
  }
}

/** Returns a right that the operator lacks on machines of the entry's clause; null for none. */
function missing(rights: Rights, { when }: ValueEntry): 'values' | 'apply' | null {
  const selector = selectorOfClause(when);
  return (['values', 'apply'] as const).find((right) => !rights.covers(right, selector, null)) ?? null;
}

const textOf = ({ when, shared, set }: ValueEntry): string => JSON.stringify([when, shared, set]);

function beyond(rights: Rights, entry: ValueEntry): Fault {
  const { message, data } = notGranted(
    missing(rights, entry) ?? 'values',
    `the machines of the entry for ${showClause(entry.when)}`,
  );
  return new Fault('not_granted', message, {
    hint: 'give each entry that you change a clause of your grants, such as when: {tag.env: dev}',
    ...(data !== undefined && { data }),
  });
}
