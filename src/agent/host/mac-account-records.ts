/** Users and groups of macOS: those of people are records of the local directory, and in no file. */
import { execFileSync } from 'node:child_process';
import type { Command } from '../../resources/command.js';
import type { Accounts } from '../../resources/host.js';
import { parseMacGroups, parseMacUsers, READ_MAC_GROUPS, READ_MAC_USERS } from '../../resources/unix/mac-accounts.js';
import { AccountFiles, parseAccounts } from './accounts.js';

/** What a command writes; null when it fails. */
export type Ask = (command: Command) => string | null;

/** Asks once, and again only after something was run that may have changed them. */
export class MacAccountRecords {
  private readonly ask: Ask;
  private readonly files: AccountFiles;
  private known: Accounts | null = null;

  constructor(ask: Ask = askDirectory, files = new AccountFiles()) {
    this.ask = ask;
    this.files = files;
  }

  /** Where the directory does not answer, the accounts in files, which are those of the system. */
  read(): Accounts {
    this.known ??= this.readRecords() ?? this.files.read();
    return this.known;
  }

  forget(): void {
    this.known = null;
  }

  private readRecords(): Accounts | null {
    const users = parseMacUsers(this.ask(READ_MAC_USERS) ?? '');
    const groups = parseMacGroups(this.ask(READ_MAC_GROUPS) ?? '');
    if (users === null || groups === null) return null;
    return parseAccounts(
      linesOf(users.map(({ name, uid }) => ({ name, id: uid }))),
      linesOf(groups.map(({ name, gid }) => ({ name, id: gid }))),
    );
  }
}

const linesOf = (records: readonly { readonly name: string; readonly id: number | null }[]): string =>
  records
    .filter(({ name, id }) => id !== null && !/[:\n]/.test(name))
    .map(({ name, id }) => `${name}:*:${id}`)
    .join('\n');

function askDirectory({ argv: [program, ...args] }: Command): string | null {
  try {
    const options = { encoding: 'utf8', timeout: 30_000, maxBuffer: 64 * 1024 * 1024, stdio: 'pipe' } as const;
    return execFileSync(`/usr/bin/${program}`, args, options);
  } catch {
    return null;
  }
}
