/** The users and groups of a Unix machine, as they were read at one moment. */
import { parseUnixId } from './unix-account-name.js';

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
