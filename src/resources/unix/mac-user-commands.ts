/**
 * Commands that change users and groups of macOS, which are records of the local directory. `dscl` sets every field, reports
 * failures by its exit status, and creates accounts without a usable password; `sysadminctl` requires one.
 */
import type { RunStep } from '../host.js';
import type { UnixAccounts, UnixGroup, UnixUser } from './unix-accounts.js';
import type { UserSettings } from './unix-user-difference.js';

const run = (program: string, ...args: readonly string[]): RunStep => ({
  do: 'run',
  command: { argv: [program, ...args] },
});

const setUser = (name: string, attribute: string, value: string): RunStep =>
  run('dscl', '.', '-create', `/Users/${name}`, attribute, value);

const member = (option: '-a' | '-d', user: string, group: string): RunStep =>
  run('dseditgroup', '-o', 'edit', '-n', '.', option, user, '-t', 'user', group);

/** ID of `staff`, the default group of users. */
const STAFF = '20';

interface MacUser {
  readonly name: string;
  /** Null for a new user. */
  readonly user: UnixUser | null;
  readonly settings: UserSettings;
  readonly isSystem: boolean;
  /** ID for a user without one. */
  readonly freeUid: number | null;
  readonly accounts: UnixAccounts;
}

/** Sets an unusable password first, so that the account is never open. */
export function createMacUser(mac: MacUser): readonly RunStep[] {
  const { name, isSystem } = mac;
  return [
    setUser(name, 'Password', '*'),
    setUser(name, 'RealName', name),
    ...(isSystem ? [setUser(name, 'IsHidden', '1')] : []),
    ...changeMacUser(mac),
    ...(isSystem ? [] : [run('createhomedir', '-c', '-u', name)]),
  ];
}

/** Sets what differs. Completes an unfinished record, which has no ID; the ID comes last. */
export function changeMacUser({ name, user, settings, isSystem, freeUid, accounts }: MacUser): readonly RunStep[] {
  const { uid, group, groups, home, shell } = settings;
  const standard = user?.uid == null ? standardOf(name, isSystem, accounts) : null;
  const gid = group === null ? null : (accounts.referred(group)?.gid ?? group);
  const set = {
    PrimaryGroupID: gid ?? (user?.gid == null ? standard?.gid : null),
    NFSHomeDirectory: home ?? (user?.home == null ? standard?.home : null),
    UserShell: shell ?? (user?.shell == null ? standard?.shell : null),
    UniqueID: uid ?? (standard === null ? null : freeUid),
  };
  return [
    ...Object.entries(set).flatMap(([attribute, value]) =>
      value == null ? [] : [setUser(name, attribute, String(value))],
    ),
    ...(groups === null ? [] : changeMembership(name, groups, accounts)),
  ];
}

/** Returns the defaults of a new account. */
const standardOf = (name: string, isSystem: boolean, accounts: UnixAccounts) => ({
  gid: accounts.group(name)?.gid ?? STAFF,
  home: isSystem ? '/var/empty' : `/Users/${name}`,
  shell: isSystem ? '/usr/bin/false' : '/bin/zsh',
});

function changeMembership(name: string, wanted: readonly string[], accounts: UnixAccounts): readonly RunStep[] {
  const there = accounts.supplementaryOf(name);
  return [
    ...wanted.filter((group) => !there.includes(group)).map((group) => member('-a', name, group)),
    ...there.filter((group) => !wanted.includes(group)).map((group) => member('-d', name, group)),
  ];
}

/** Removes a user and keeps the home directory. */
export const removeMacUser = (name: string, accounts: UnixAccounts): readonly RunStep[] => [
  ...changeMembership(name, [], accounts),
  run('dscl', '.', '-delete', `/Users/${name}`),
];

export const createMacGroup = (name: string, gid: number | null): readonly RunStep[] => [
  run('dseditgroup', '-o', 'create', '-n', '.', ...(gid === null ? [] : ['-i', String(gid)]), name),
];

/** Changes the ID of a group, and the primary group of its users, as on Linux. */
export const changeMacGroup = (
  { name, gid: old }: UnixGroup,
  gid: number,
  accounts: UnixAccounts,
): readonly RunStep[] => [
  run('dscl', '.', '-create', `/Groups/${name}`, 'PrimaryGroupID', String(gid)),
  ...accounts.users
    .filter((user) => old !== null && user.gid === old)
    .map((user) => setUser(user.name, 'PrimaryGroupID', String(gid))),
];

export const removeMacGroup = (name: string): readonly RunStep[] => [run('dscl', '.', '-delete', `/Groups/${name}`)];
