/** The users and groups of a Unix machine, as they were read at one moment. */
import type { BodyProblem } from '../kind.js';

export interface UnixUser {
  readonly name: string;
  /** Null for a record that somebody has left unfinished, which only macOS can hold; so are the others. */
  readonly uid: number | null;
  readonly gid: number | null;
  readonly home: string | null;
  readonly shell: string | null;
  /** False when it comes from a directory service, so that the tools of this machine cannot change it. */
  readonly isLocal: boolean;
}

export interface UnixGroup {
  readonly name: string;
  readonly gid: number | null;
  /** Names of users, those whose primary group it is left out. */
  readonly members: readonly string[];
  readonly isLocal: boolean;
}

export interface UnixAccountsOptions {
  readonly platform: 'linux' | 'macos';
  readonly users: readonly UnixUser[];
  readonly groups: readonly UnixGroup[];
}

/** Of a name or number that comes twice, the first counts, as for the system. */
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

  /** A group by its name or its number, as the tools read it. */
  referred(reference: string): UnixGroup | undefined {
    const gid = parseUnixId(reference);
    return gid === undefined ? this.group(reference) : this.groupOf(gid);
  }

  /** Names of the groups that a user was put into, its primary group left out unless it is listed there too. */
  supplementaryOf(user: string): readonly string[] {
    return this.groups.filter(({ isLocal, members }) => isLocal && members.includes(user)).map(({ name }) => name);
  }
}

function indexed<K, T>(all: readonly T[], keyOf: (one: T) => K): ReadonlyMap<K, T> {
  const map = new Map<K, T>();
  for (const one of all) if (!map.has(keyOf(one))) map.set(keyOf(one), one);
  return map;
}

/** Names of users and groups on Unix, and groups by their name or number. */
export const MAX_ACCOUNT_NAME = 32;

/** The number after it means "leave it" to the system. */
export const LARGEST_ID = 0xffff_fffe;

/** What schemas accept: every unsigned number of 32 bits, of which `checkUnixId` refuses the last with its reason. */
export const LARGEST_UINT32 = 0xffff_ffff;

/** Why a number cannot be that of a user or group; `field` is `uid` or `gid`. */
export const checkUnixId = (field: 'uid' | 'gid', id: number | null | undefined): readonly BodyProblem[] =>
  id == null || id <= LARGEST_ID
    ? []
    : [{ path: `/${field}`, message: `${field} ${id} means "leave it" to the system; the largest is ${LARGEST_ID}` }];

/** What would end a field or a line of the account files, separate a list, or is not seen. */
const FORBIDDEN = /[:,/\\\s\p{C}]/u;

/** The number that a text of digits stands for; undefined for everything else. */
export function parseUnixId(digits: string): number | undefined {
  if (!/^[0-9]{1,10}$/.test(digits)) return undefined;
  const id = Number(digits);
  return id <= LARGEST_ID ? id : undefined;
}

/** Why a name cannot be that of a user or group, or null when it can. The tools of a system may refuse more. */
export function problemOfUnixName(name: string): string | null {
  if (/^[0-9]+$/.test(name)) return 'must not consist of digits only: that is a number';
  if (/^[-+~]/.test(name)) return `must not begin with "${name.charAt(0)}"`;
  if (name === '.' || name === '..') return 'must not be a directory of its own';
  const forbidden = FORBIDDEN.exec(name)?.[0];
  return forbidden === undefined ? null : `must not contain ${JSON.stringify(forbidden)}`;
}

/** The mistakes in names, each with where it stands. */
export function checkUnixNames(names: Readonly<Record<string, string>>): readonly BodyProblem[] {
  return Object.entries(names).flatMap(([path, name]) => complain(path, name, problemOfUnixName(name)));
}

/** The mistakes in groups that are named or numbered. */
export function checkGroupReferences(groups: Readonly<Record<string, string>>): readonly BodyProblem[] {
  return Object.entries(groups).flatMap(([path, group]) =>
    parseUnixId(group) === undefined ? complain(path, group, problemOfUnixName(group)) : [],
  );
}

const complain = (path: string, name: string, problem: string | null): readonly BodyProblem[] =>
  problem === null ? [] : [{ path, message: `the name ${JSON.stringify(name)} ${problem}` }];
