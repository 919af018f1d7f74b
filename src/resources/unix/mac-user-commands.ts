/**
 * Users and groups of macOS are records of the local directory. `dscl` alone sets every field of them, tells a failure by its
 * status, and makes an account without a password that anybody could give; `sysadminctl` is for accounts with one.
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

/** `staff`, the group of the people who use a Mac. */
const STAFF = '20';

export interface MacUser {
  readonly name: string;
  /** Null for a new one. */
  readonly user: UnixUser | null;
  readonly settings: UserSettings;
  readonly isSystem: boolean;
  /** For a user that has no number yet. */
  readonly freeUid: number | null;
  readonly accounts: UnixAccounts;
}

/** The password comes first and is none that anybody could give, so that the record is closed from its beginning. */
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

/** Sets what differs. A record without a number was never finished, and gets all that it lacks; the number comes last. */
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

/** What an account gets when nothing is said about it. */
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

/** The home directory stays. */
export const removeMacUser = (name: string, accounts: UnixAccounts): readonly RunStep[] => [
  ...changeMembership(name, [], accounts),
  run('dscl', '.', '-delete', `/Users/${name}`),
];

export const createMacGroup = (name: string, gid: number | null): readonly RunStep[] => [
  run('dseditgroup', '-o', 'create', '-n', '.', ...(gid === null ? [] : ['-i', String(gid)]), name),
];

/** The users whose primary group it is follow it, as they do on Linux. */
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
