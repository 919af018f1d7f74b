/** A snapshot of the users and groups of a Unix machine, and the rules for their names and IDs. */
import type { BodyProblem } from '../kind.js';

export interface UnixUser {
  readonly name: string;
  /** Null, like the other fields, in an unfinished record, which only macOS can hold. */
  readonly uid: number | null;
  readonly gid: number | null;
  readonly home: string | null;
  readonly shell: string | null;
  /** On Linux: the name and other details of the person. */
  readonly comment?: string;
  /** False for an account of a directory service, which local tools cannot change. */
  readonly isLocal: boolean;
}

export interface UnixGroup {
  readonly name: string;
  readonly gid: number | null;
  /** Names of supplementary members, without users of this primary group. */
  readonly members: readonly string[];
  readonly isLocal: boolean;
}

interface UnixAccountsOptions {
  readonly platform: 'linux' | 'macos';
  readonly users: readonly UnixUser[];
  readonly groups: readonly UnixGroup[];
}

/** The accounts by name and ID; the first entry of a duplicate name or ID wins, as in the system. */
export class UnixAccounts {
  readonly platform: 'linux' | 'macos';
  readonly users: readonly UnixUser[];
  readonly groups: readonly UnixGroup[];
  private readonly usersByName: ReadonlyMap<string, UnixUser>;
  private readonly groupsByName: ReadonlyMap<string, UnixGroup>;
  private readonly groupsByNumber: ReadonlyMap<number | null, UnixGroup>;

  constructor({ platform, users, groups }: UnixAccountsOptions) {
    this.platform = platform;
    this.users = users;
    this.groups = groups;
    this.usersByName = indexed(users, ({ name }) => name);
    this.groupsByName = indexed(groups, ({ name }) => name);
    this.groupsByNumber = indexed(groups, ({ gid }) => gid);
  }

  user(name: string): UnixUser | undefined {
    return this.usersByName.get(name);
  }

  group(name: string): UnixGroup | undefined {
    return this.groupsByName.get(name);
  }

  groupOf(gid: number): UnixGroup | undefined {
    return this.groupsByNumber.get(gid);
  }

  /** Returns a group by name or number, as the system's tools do. */
  referred(reference: string): UnixGroup | undefined {
    const gid = parseUnixId(reference);
    return gid === undefined ? this.group(reference) : this.groupOf(gid);
  }

  /** Returns the names of the local groups that list a user as a member. */
  supplementaryOf(user: string): readonly string[] {
    return this.groups.filter(({ isLocal, members }) => isLocal && members.includes(user)).map(({ name }) => name);
  }
}

function indexed<K, T>(all: readonly T[], keyOf: (one: T) => K): ReadonlyMap<K, T> {
  const map = new Map<K, T>();
  for (const one of all) if (!map.has(keyOf(one))) map.set(keyOf(one), one);
  return map;
}

/** Maximum characters of a user or group name. */
export const MAX_ACCOUNT_NAME = 32;

/** Largest valid ID; the next number means "unchanged" to the system. */
const LARGEST_ID = 0xffff_fffe;

/** Limit of the schemas; `checkUnixId` refuses the last number with a reason. */
export const LARGEST_UINT32 = 0xffff_ffff;

/** Returns why a number is no valid ID. */
export const checkUnixId = (field: 'uid' | 'gid', id: number | null | undefined): readonly BodyProblem[] =>
  id == null || id <= LARGEST_ID
    ? []
    : [{ path: `/${field}`, message: `${field} ${id} means "leave it" to the system; the largest is ${LARGEST_ID}` }];

/** Separators of the account files, and invisible characters. */
const FORBIDDEN = /[:,/\\\s\p{C}]/u;

/** Parses a valid ID; returns undefined for everything else. */
export function parseUnixId(digits: string): number | undefined {
  if (!/^[0-9]{1,10}$/.test(digits)) return undefined;
  const id = Number(digits);
  return id <= LARGEST_ID ? id : undefined;
}

/** Returns why a name is invalid for a user or group, or null. The system's tools may refuse more. */
export function problemOfUnixName(name: string): string | null {
  if (/^[0-9]+$/.test(name)) return 'must not consist of digits only: that is a number';
  if (/^[-+~]/.test(name)) return `must not begin with "${name.charAt(0)}"`;
  if (name === '.' || name === '..') return 'must not be a directory of its own';
  const forbidden = FORBIDDEN.exec(name)?.[0];
  return forbidden === undefined ? null : `must not contain ${JSON.stringify(forbidden)}`;
}

/** Checks names, given by their JSON pointers. */
export function checkUnixNames(names: Readonly<Record<string, string>>): readonly BodyProblem[] {
  return Object.entries(names).flatMap(([path, name]) => complain(path, name, problemOfUnixName(name)));
}

/** Checks groups that are given by name or number. */
export function checkGroupReferences(groups: Readonly<Record<string, string>>): readonly BodyProblem[] {
  return Object.entries(groups).flatMap(([path, group]) =>
    parseUnixId(group) === undefined ? complain(path, group, problemOfUnixName(group)) : [],
  );
}

/** Checks a user that is given by name or number, by its JSON pointer. */
export const checkUserReference = (path: string, user: string): readonly BodyProblem[] =>
  parseUnixId(user) === undefined ? checkUnixNames({ [path]: user }) : [];

const complain = (path: string, name: string, problem: string | null): readonly BodyProblem[] =>
  problem === null ? [] : [{ path, message: `the name ${JSON.stringify(name)} ${problem}` }];
