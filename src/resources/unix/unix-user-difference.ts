/** How a user of Linux or macOS differs from what a module wants. */
import type { FieldChange } from '../kind.js';
import type { UnixAccounts, UnixUser } from './unix-accounts.js';
import type { UnixUserBody } from './unix-user-body.js';

/** What is to be set, each as the tools take it; null where nothing has to change. */
export interface UserSettings {
  readonly uid: number | null;
  /** By name, or by number where it has none. */
  readonly group: string | null;
  /** All of them. */
  readonly groups: readonly string[] | null;
  readonly home: string | null;
  readonly shell: string | null;
}

export interface UserDifference {
  readonly changes: readonly FieldChange[];
  readonly settings: UserSettings;
}

/** Without a user, everything that is wanted is new. */
export function compareUser(want: UnixUserBody, user: UnixUser | null, accounts: UnixAccounts): UserDifference {
  const uid = want.uid != null && want.uid !== user?.uid ? want.uid : null;
  const home = want.home != null && want.home !== user?.home ? want.home : null;
  const shell = want.shell != null && want.shell !== user?.shell ? want.shell : null;
  const group = changedGroup(want, user, accounts);
  const there = user === null ? [] : sorted(accounts.supplementaryOf(user.name));
  const groups = changedGroups(want, there, accounts);
  const changes: FieldChange[] = [];
  const note = (field: string, before: string | null, after: string | null) => changes.push({ field, before, after });
  if (uid !== null) note('uid', user?.uid == null ? null : String(user.uid), String(uid));
  if (group !== null) note('primary_group', groupNameOf(user, accounts), want.primary_group ?? null);
  if (groups !== null) note('additional_groups', user === null ? null : there.join(', '), groups.join(', '));
  if (home !== null) note('home', user?.home ?? null, home);
  if (shell !== null) note('shell', user?.shell ?? null, shell);
  return { changes, settings: { uid, group, groups, home, shell } };
}

function changedGroup({ primary_group }: UnixUserBody, user: UnixUser | null, accounts: UnixAccounts): string | null {
  if (primary_group == null) return null;
  const group = accounts.referred(primary_group);
  if (group === undefined) return primary_group;
  return group.gid !== null && group.gid === user?.gid ? null : group.name;
}

function changedGroups(
  { additional_groups }: UnixUserBody,
  there: readonly string[],
  accounts: UnixAccounts,
): readonly string[] | null {
  if (additional_groups == null) return null;
  const groups = sorted(additional_groups.map((group) => accounts.referred(group)?.name ?? group));
  return groups.join() === there.join() ? null : groups;
}

/** Each once. */
const sorted = (names: readonly string[]): readonly string[] => [...new Set(names)].sort();

function groupNameOf(user: UnixUser | null, accounts: UnixAccounts): string | null {
  if (user?.gid == null) return null;
  return accounts.groupOf(user.gid)?.name ?? String(user.gid);
}
