/** Names of local users and groups on Windows: one space of names for both, in which case does not count. */
import type { BodyProblem } from '../kind.js';

/** What the account database refuses in names; control characters too. */
const FORBIDDEN = /["/\\[\]:|<>+=;,?*@\u0000-\u001f]/;

/** Why a name cannot be that of a local account, or null when it can. */
export function problemOfAccountName(name: string): string | null {
  const forbidden = FORBIDDEN.exec(name)?.[0];
  if (forbidden !== undefined) return `must not contain ${JSON.stringify(forbidden)}`;
  if (/\p{Surrogate}/u.test(name)) return 'must be valid Unicode text';
  if (/^[. ]+$/.test(name)) return 'must not consist of dots and spaces only';
  if (name.endsWith('.')) return 'must not end with a dot';
  return name.trim() === name ? null : 'must not begin or end with a space';
}

/** The mistakes in names, each with where it stands. */
export function checkAccountNames(names: Readonly<Record<string, string>>): readonly BodyProblem[] {
  return Object.entries(names).flatMap(([path, name]) => {
    const problem = problemOfAccountName(name);
    return problem === null ? [] : [{ path, message: `the name ${JSON.stringify(name)} ${problem}` }];
  });
}
