/** Protected tags: those by which grants, assignments of limited operators, secrets and windows select machines. */
import type { Grant } from '../../src/contract/rights.js';
import type { Restriction } from '../../src/contract/secrets.js';
import { parseMachineSelector, parseSelector } from '../../src/language/selector.js';
import { keysOf, type Machine, notGranted, type Rights } from '../core/rights.js';
import type { Queryable } from '../database/schema.js';
import { storedJson } from '../database/stored-json.js';

/**
 * Throws `not_granted` for a changed tag that is protected, unless the operator holds the right to its key on the machine as it is
 * and as it will be.
 */
export async function refuseProtected(tx: Queryable, rights: Rights, { before, after }: TagChange): Promise<void> {
  if (!rights.isLimited) return;
  const isProtected = await protectedKeys(tx);
  const keys = new Set([...Object.keys(before.tags), ...Object.keys(after.tags)]);
  for (const key of keys) {
    if (before.tags[key] === after.tags[key] || !isProtected.has(key)) continue;
    for (const machine of [before, after]) {
      if (!rights.mayTag(key, machine)) throw notGranted(`tag:${key}`, 'this machine as it is and as it will be');
    }
  }
}

interface TagChange {
  readonly before: Machine;
  readonly after: Machine;
}

/** Returns the keys of all tags that are protected. */
export async function protectedKeys(tx: Queryable): Promise<ReadonlySet<string>> {
  const operators = await tx
    .selectFrom('operators')
    .select('grants_json')
    .where('removed_at', 'is', null)
    .where('grants_json', 'is not', null)
    .execute();
  const assignments = await tx
    .selectFrom('assignments')
    .select('scope_json')
    .where('scope_json', 'is not', null)
    .execute();
  const secrets = await tx
    .selectFrom('secrets')
    .select('restriction_json')
    .where('restriction_json', 'is not', null)
    .execute();
  const windows = await tx
    .selectFrom('maintenance_windows')
    .select('selector')
    .where('selector', 'is not', null)
    .execute();
  return new Set([
    ...operators.flatMap(({ grants_json: text }) =>
      storedJson<Grant[]>(text ?? '[]').flatMap((one) => keysIn(one.selector)),
    ),
    ...assignments.flatMap(({ scope_json: text }) => storedJson<string[]>(text ?? '[]').flatMap(keysIn)),
    ...secrets.flatMap(({ restriction_json: text }) => {
      const { tags = null } = storedJson<Partial<Restriction>>(text ?? '{}');
      return tags === null ? [] : keysOf(parseSelector(tags));
    }),
    ...windows.flatMap(({ selector }) => (selector === null ? [] : keysOf(parseSelector(selector)))),
  ]);
}

const keysIn = (selector: string): readonly string[] => keysOf(parseMachineSelector(selector));
