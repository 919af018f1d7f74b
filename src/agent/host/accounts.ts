/** Users and groups of this machine: from `/etc/passwd` and `/etc/group`, on macOS from the local directory. */

import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import type { Command } from '../../resources/command.js';
import type { Accounts } from '../../resources/host.js';
import { parseMacGroups, parseMacUsers, READ_MAC_GROUPS, READ_MAC_USERS } from '../../resources/unix/mac-accounts.js';

/** Largest valid ID; the next number, 2^32 - 1, means "unchanged" to the system. */
const LARGEST_ID = 0xffff_fffe;

/** Parses the two files. A name takes precedence over digits, as in `chown`. */
export function parseAccounts(passwd: string, group: string): Accounts {
  const users = new Names(passwd);
  const groups = new Names(group);
  return {
    uid: (owner) => users.idOf(owner),
    gid: (name) => groups.idOf(name),
    loginGroup: (owner) => users.groupOf(owner),
    userName: (uid) => users.nameOf(uid),
    groupName: (gid) => groups.nameOf(gid),
    own: { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 },
  };
}

/** Accounts in files, read again only after a change of one of them. */
export class AccountFiles {
  private readonly root: string;
  private cached: { readonly stamp: string; readonly accounts: Accounts } | undefined;

  /** @param root the directory that holds `etc`, with `/` at its end */
  constructor(root = '/') {
    this.root = root;
  }

  read(): Accounts {
    const paths = [`${this.root}etc/passwd`, `${this.root}etc/group`] as const;
    const stamp = paths.map(stampOf).join(' ');
    if (this.cached?.stamp !== stamp) {
      const [passwd, group] = [textOf(paths[0]), textOf(paths[1])];
      this.cached = { stamp, accounts: parseAccounts(passwd, group) };
    }
    return this.cached.accounts;
  }

  /** Does nothing, because changed files are detected. */
  forget(): void {}
}

class Names {
  private readonly ids = new Map<string, number>();
  private readonly names = new Map<number, string>();
  private readonly groups = new Map<string, number>();

  /** Parses lines of `name:x:id:…`, of users with their group next; the first entry of a name or ID wins. */
  constructor(text: string) {
    for (const line of text.split('\n')) {
      const [name = '', , digits = '', group = ''] = line.split(':');
      const id = parseId(digits);
      if (name === '' || id === undefined) continue;
      if (!this.ids.has(name)) this.ids.set(name, id);
      if (!this.names.has(id)) this.names.set(id, name);
      const gid = parseId(group);
      if (gid !== undefined && !this.groups.has(name)) this.groups.set(name, gid);
    }
  }

  /** Returns the group in the entry of a user. */
  groupOf(name: string): number | undefined {
    return this.groups.get(this.nameOf(this.idOf(name) ?? Number.NaN));
  }

  idOf(name: string): number | undefined {
    return this.ids.get(name) ?? parseId(name);
  }

  nameOf(id: number): string {
    return this.names.get(id) ?? String(id);
  }
}

function parseId(digits: string): number | undefined {
  if (!/^\d{1,10}$/.test(digits)) return undefined;
  const id = Number(digits);
  return id <= LARGEST_ID ? id : undefined;
}

function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stats ? `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}` : 'none';
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Without the file there are no names; digits still work.
    return '';
  }
}

/** Returns the output of a command; null when it fails. */
type Ask = (command: Command) => string | null;

/** Accounts of the local directory, read again only after a command that may have changed them. */
export class MacAccountRecords {
  private readonly ask: Ask;
  private readonly files: AccountFiles;
  private cached: Accounts | null = null;

  constructor(ask: Ask = askDirectory, files = new AccountFiles()) {
    this.ask = ask;
    this.files = files;
  }

  /** Falls back to the files, which hold the system accounts, when the directory does not answer. */
  read(): Accounts {
    this.cached ??= this.readRecords() ?? this.files.read();
    return this.cached;
  }

  forget(): void {
    this.cached = null;
  }

  private readRecords(): Accounts | null {
    const users = parseMacUsers(this.ask(READ_MAC_USERS) ?? '');
    const groups = parseMacGroups(this.ask(READ_MAC_GROUPS) ?? '');
    if (users === null || groups === null) return null;
    return parseAccounts(
      linesOf(users.map(({ name, uid, gid }) => ({ name, id: uid, group: gid }))),
      linesOf(groups.map(({ name, gid }) => ({ name, id: gid }))),
    );
  }
}

interface AccountRecord {
  readonly name: string;
  readonly id: number | null;
  readonly group?: number | null;
}

const linesOf = (records: readonly AccountRecord[]): string =>
  records
    .filter(({ name, id }) => id !== null && !/[:\n]/.test(name))
    .map(({ name, id, group }) => `${name}:*:${id}:${group ?? ''}`)
    .join('\n');

function askDirectory({ argv: [program, ...args] }: Command): string | null {
  try {
    const options = { encoding: 'utf8', timeout: 30_000, maxBuffer: 64 * 1024 * 1024, stdio: 'pipe' } as const;
    return execFileSync(`/usr/bin/${program}`, args, options);
  } catch {
    return null;
  }
}
