/** Numbers for new users, on systems whose tools take whatever number they are given. */
import type { UnixAccounts } from './unix-accounts.js';
import type { UnixUserBody } from './unix-user-body.js';

/** Where macOS keeps accounts of services and of people. */
const FIRST = { system: 200, ordinary: 501 };

/** One for each, none twice and none that somebody has or is to get. */
export function freeUids(wants: readonly UnixUserBody[], accounts: UnixAccounts): readonly number[] {
  const taken = new Set<number | null | undefined>([
    ...accounts.users.map(({ uid }) => uid),
    ...wants.map(({ uid }) => uid),
  ]);
  const next = { ...FIRST };
  return wants.map(({ system }) => {
    const range = system === true ? 'system' : 'ordinary';
    while (taken.has(next[range])) next[range] += 1;
    taken.add(next[range]);
    return next[range];
  });
}
