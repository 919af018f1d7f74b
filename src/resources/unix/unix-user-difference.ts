/** How a user of Linux or macOS differs from the wanted one, and what prevents the change. */

import type { CommandRefusal } from '../command.js';
import type { FieldChange, PlanContext } from '../kind.js';
import type { UnixUserBody } from '../user-unix.js';
import type { UnixAccounts, UnixUser } from './unix-accounts.js';

/** Values to set, in the form of the tools; null where nothing changes. */
export interface UserSettings {
  readonly uid: number | null;
  /** Name of the primary group, or its number without a name. */
  readonly group: string | null;
  /** All supplementary groups. */
  readonly groups: readonly string[] | null;
  readonly home: string | null;
  readonly shell: string | null;
  readonly comment: string | null;
}

export interface UserDifference {
  readonly changes: readonly FieldChange[];
  readonly settings: UserSettings;
}

/** Compares a user with the wanted one; without a user, every wanted field changes. */
export function compareUser(want: UnixUserBody, user: UnixUser | null, accounts: UnixAccounts): UserDifference {
  const uid = want.uid != null && want.uid !== user?.uid ? want.uid : null;
  const home = want.home != null && want.home !== user?.home ? want.home : null;
  const shell = want.shell != null && want.shell !== user?.shell ? want.shell : null;
  const group = changedGroup(want, user, accounts);
  const there = user === null ? [] : sorted(accounts.supplementaryOf(user.name));
  const groups = changedGroups(want, there, accounts, group ?? groupNameOf(user, accounts));
  const comment = want.comment != null && want.comment !== user?.comment ? want.comment : null;
  const changes: FieldChange[] = [];
  const note = (field: string, before: string | null, after: string | null) => changes.push({ field, before, after });
  if (uid !== null) note('uid', user?.uid == null ? null : String(user.uid), String(uid));
  if (group !== null) note('primary_group', groupNameOf(user, accounts), want.primary_group ?? null);
  if (groups !== null && want.append_groups == null) {
    note('additional_groups', user === null ? null : there.join(', '), groups.join(', '));
  } else if (groups !== null) {
    const appended = namesOf(want.append_groups ?? [], accounts);
    const before = appended.filter((name) => there.includes(name));
    note('append_groups', user === null ? null : before.join(', '), appended.join(', '));
  }
  if (home !== null) note('home', user?.home ?? null, home);
  if (shell !== null) note('shell', user?.shell ?? null, shell);
  if (comment !== null) note('comment', user?.comment ?? null, comment);
  return { changes, settings: { uid, group, groups, home, shell, comment } };
}

function changedGroup({ primary_group }: UnixUserBody, user: UnixUser | null, accounts: UnixAccounts): string | null {
  if (primary_group == null) return null;
  const group = accounts.referred(primary_group);
  if (group === undefined) return primary_group;
  return group.gid !== null && group.gid === user?.gid ? null : group.name;
}

function changedGroups(
  { additional_groups, append_groups }: UnixUserBody,
  there: readonly string[],
  accounts: UnixAccounts,
  primary: string | null,
): readonly string[] | null {
  if (append_groups != null) {
    const missing = namesOf(append_groups, accounts).filter((name) => !there.includes(name) && name !== primary);
    return missing.length === 0 ? null : sorted([...there, ...missing]);
  }
  if (additional_groups == null) return null;
  const groups = namesOf(additional_groups, accounts);
  return groups.join() === there.join() ? null : groups;
}

const namesOf = (groups: readonly string[], accounts: UnixAccounts): readonly string[] =>
  sorted(groups.map((group) => accounts.referred(group)?.name ?? group));

/** Returns the unique names in order. */
const sorted = (names: readonly string[]): readonly string[] => [...new Set(names)].sort();

function groupNameOf(user: UnixUser | null, accounts: UnixAccounts): string | null {
  if (user?.gid == null) return null;
  return accounts.groupOf(user.gid)?.name ?? String(user.gid);
}

/** The inputs of `refuseUser`. */
interface Aim {
  readonly accounts: UnixAccounts;
  readonly settings: UserSettings;
}

/** Returns why a change must fail, before it is tried, or null. A drift check only reports differences. */
export function refuseUser(
  { name }: UnixUserBody,
  user: UnixUser | null,
  aim: Aim,
  context: PlanContext,
): CommandRefusal | null {
  if (context.purpose === 'drift') return null;
  if (user !== null && !user.isLocal) {
    const message = `the user ${name} comes from a directory service and differs; it has to be changed there`;
    return { code: 'account_not_local', message };
  }
  return context.mayAppear ? null : (refuseNumber(name, aim, context) ?? refuseGroups(aim, context));
}

function refuseNumber(name: string, { accounts, settings: { uid } }: Aim, context: PlanContext): CommandRefusal | null {
  const isHolder = (other: UnixUser) =>
    other.uid === uid && other.name !== name && !context.removes('user', other.name);
  const holder = uid === null ? undefined : accounts.users.find(isHolder);
  if (holder === undefined) return null;
  return {
    code: 'id_taken',
    message: `the user ${name} cannot have the uid ${uid}: it is taken by the user ${holder.name}`,
  };
}

function refuseGroups({ accounts, settings: { group, groups } }: Aim, context: PlanContext): CommandRefusal | null {
  const named = [...(group === null ? [] : [group]), ...(groups ?? [])];
  const unknown = named.find((one) => accounts.referred(one) === undefined && !context.declares('group', one));
  if (unknown !== undefined) {
    const message = `there is no group "${unknown}" on this machine; declare it as a group-unix resource before the user`;
    return { code: 'unknown_group', message };
  }
  const remote = groups?.find((one) => accounts.referred(one)?.isLocal === false);
  if (remote === undefined) return null;
  const message = `the group ${remote} comes from a directory service; its members have to be changed there`;
  return { code: 'account_not_local', message };
}
