/** Finds loops that give an agent nothing now, although they gave it something before and the module is the same. */
import { choicesOf, membersOf, type WrittenMember } from '../../../src/language/compile-module.js';
import { parseText } from '../../../src/language/expression.js';
import { isAbsence } from '../../../src/resources/absence-name.js';
import { CATALOGUE } from '../../../src/resources/catalogue.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import type { CurrentModule } from '../modules/current-modules.js';

interface Managed extends Pick<DesiredResource, 'module' | 'kind' | 'identity' | 'id'> {
  /** Unix milliseconds. */
  readonly applied_at: number;
}

/**
 * Returns those of the removed resources whose loop gives nothing now, because values or facts have changed. A module that was
 * uploaded since counts as a change of its author.
 * @param desired the resources that the agent is to have
 */
export function emptiedByValues<Row extends Managed>(
  modules: readonly CurrentModule[],
  removed: readonly Row[],
  desired: readonly Pick<DesiredResource, 'module' | 'kind' | 'identity' | 'id'>[],
): ReadonlySet<Row> {
  const emptied = new Set<Row>();
  for (const { name, stored, definition } of modules) {
    const rows = removed.filter(
      (row) => row.module === name && stored !== null && stored.uploaded_at <= row.applied_at,
    );
    if (rows.length === 0) continue;
    const own = desired.filter(({ module }) => module === name);
    for (const member of membersOf(definition).filter(isLooped)) {
      const mine = rows.filter((row) => mayMake(member, row));
      if (mine.length > 0 && !own.some((resource) => mayMake(member, resource)))
        for (const row of mine) emptied.add(row);
    }
  }
  return emptied;
}

const isLooped = ({ entry, group }: WrittenMember): boolean =>
  entry.for_each !== undefined || group?.for_each !== undefined;

/** Returns true for a resource that an element of the loop can have made, by its id or by the form of its identity. */
function mayMake(
  { entry }: WrittenMember,
  { kind, identity, id }: Pick<DesiredResource, 'kind' | 'identity' | 'id'>,
): boolean {
  if (entry.id != null && id?.startsWith(`${entry.id}[`) === true) return true;
  return choicesOf(entry).some(({ choice }) =>
    Object.entries(choice).some(([name, body]) => {
      const written = CATALOGUE.get(name);
      if (isAbsence(name) !== isAbsence(kind)) return false;
      if (written === undefined || written.family !== CATALOGUE.get(kind)?.family) return false;
      return hasForm(identity, written.identity(body, entry.id ?? null));
    }),
  );
}

/** Returns true for a text that a text with expressions can give, whatever they give. */
function hasForm(text: string, written: string): boolean {
  const { parts } = parseText(written);
  const literals = parts.filter((part) => typeof part === 'string');
  if (literals.length === parts.length) return text === literals.join('');
  let from = 0;
  for (const [index, part] of parts.entries()) {
    if (typeof part !== 'string') continue;
    const at = index === 0 ? (text.startsWith(part) ? 0 : -1) : text.indexOf(part, from);
    if (at === -1) return false;
    from = at + part.length;
  }
  const last = parts.at(-1);
  return typeof last !== 'string' || (text.endsWith(last) && text.length - last.length >= from - last.length);
}
