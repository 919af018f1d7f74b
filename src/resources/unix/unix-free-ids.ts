/** Numbers for new users, on systems whose tools take whatever number they are given. */
import type { UnixAccounts } from './unix-accounts.js';
import type { UnixUserBody } from './unix-user-body.js';

/** Where macOS keeps accounts of services and of people. */
const FIRST = { system: 200, ordinary: 501 };

/** One for each that is to get one, none twice and none that somebody has; null for the others. */
export function freeUids(wants: readonly UnixUserBody[], accounts: UnixAccounts): readonly (number | null)[] {
  const taken = new Set<number | null | undefined>([
    ...accounts.users.map(({ uid }) => uid),
    ...wants.map(({ uid }) => uid),
  ]);
  const next = { ...FIRST };
  return wants.map(({ name, uid, system }) => {
    if (uid != null || accounts.user(name)?.uid != null) return null;
    const range = system === true ? 'system' : 'ordinary';
    while (taken.has(next[range])) next[range] += 1;
    taken.add(next[range]);
    return next[range];
  });
}
