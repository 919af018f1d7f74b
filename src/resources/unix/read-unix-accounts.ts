/** Reads the users and groups of a Unix machine, once for all resources. */
import { Fault } from '../../kernel/fault.js';
import type { CommandRefusal } from '../command.js';
import { type Command, type CommandResult, commandFailure, exitedWith } from '../command.js';
import type { Host } from '../host.js';
import { parseMacGroups, parseMacUsers, READ_MAC_GROUPS, READ_MAC_USERS } from './mac-accounts.js';
import { parseUnixId, UnixAccounts, type UnixGroup, type UnixUser } from './unix-accounts.js';

/** Accounts to look up in directory services too, if the machine itself has none of that name. */
interface SoughtAccounts {
  readonly users: readonly string[];
  /** By name or number. */
  readonly groups: readonly string[];
}

type AccountsRead =
  | { readonly accounts: UnixAccounts; readonly refusal: null }
  | { readonly accounts: null; readonly refusal: CommandRefusal };

export async function readUnixAccounts(host: Host, sought: SoughtAccounts): Promise<AccountsRead> {
  try {
    const accounts = host.platform === 'macos' ? await readMac(host) : await readLinux(host, sought);
    return { accounts, refusal: null };
  } catch (error) {
    if (error instanceof Fault) return { accounts: null, refusal: { code: error.code, message: error.message } };
    throw error;
  }
}

async function readLinux(host: Host, sought: SoughtAccounts): Promise<UnixAccounts> {
  const [passwd, group] = await readFiles(host, ['/etc/passwd', '/etc/group']);
  const users = parsePasswd(passwd ?? '', true);
  const groups = parseGroup(group ?? '', true);
  const local = new UnixAccounts({ platform: 'linux', users, groups });
  const newUsers = sought.users.filter((name) => local.user(name) === undefined);
  // A new user joins the group of its own name, local or not.
  const newGroups = [...sought.groups, ...newUsers].filter((group) => local.referred(group) === undefined);
  return new UnixAccounts({
    platform: 'linux',
    users: [...users, ...parsePasswd(await askServices(host, 'passwd', newUsers), false)],
    groups: [...groups, ...parseGroup(await askServices(host, 'group', newGroups), false)],
  });
}

async function readFiles(host: Host, paths: readonly string[]): Promise<readonly string[]> {
  const facts = host.observe(paths.map((path) => ({ path, content: true, entries: false })));
  const texts: string[] = [];
  for (const [at, path] of paths.entries()) {
    const fact = facts[at];
    if (fact?.type === 'file' && fact.content.kind === 'text') texts.push(fact.content.text);
    // Only comments can be in a legacy encoding, and they are ignored.
    else if (fact?.type === 'file' && fact.content.kind === 'binary')
      texts.push(await ask(host, { argv: ['cat', path] }));
    else throw unreadable(path, fact?.type === 'unreadable' ? fact.message : 'it is no file of a usable size');
  }
  return texts;
}

const unreadable = (path: string, why: string): Fault =>
  new Fault('observe_failed', `the accounts of this machine cannot be read from ${path}: ${why}`);

function failed(command: Command, result: CommandResult): Fault {
  const { code, message } = commandFailure(command, result);
  return new Fault(code, message);
}

/** Queries directory services with one command. A system without `getent` has none. */
async function askServices(host: Host, database: 'passwd' | 'group', names: readonly string[]): Promise<string> {
  if (names.length === 0) return '';
  // 2: some names are unknown.
  return ask(host, { argv: ['getent', database, '--', ...new Set(names)] }, { ok: [0, 2], optional: true });
}

async function readMac(host: Host): Promise<UnixAccounts> {
  const users = parseMacUsers(await ask(host, READ_MAC_USERS));
  const groups = parseMacGroups(await ask(host, READ_MAC_GROUPS));
  if (users && groups) return new UnixAccounts({ platform: 'macos', users, groups });
  throw new Fault('observe_failed', 'dscl did not write the accounts as a property list');
}

interface Asking {
  /** Exit statuses of success. */
  readonly ok?: readonly number[];
  /** True when a missing program counts as an empty answer. */
  readonly optional?: boolean;
}

/** Returns the complete output of a command. Throws a Fault on failure and for truncated output. */
async function ask(host: Host, command: Command, { ok = [0], optional = false }: Asking = {}): Promise<string> {
  const result = await host.run(command);
  if (optional && result.end.how === 'not-started' && result.end.missing) return '';
  if (!exitedWith(result, ...ok)) throw failed(command, result);
  if (!result.truncated) return result.stdout;
  throw new Fault('observe_failed', `${command.argv[0]} names more accounts than orch can take at once`);
}

/** Parses lines of `name:x:uid:gid:comment:home:shell`; ignores other lines. */
export function parsePasswd(text: string, isLocal: boolean): readonly UnixUser[] {
  return fieldsOf(text).flatMap(([name = '', , uid = '', gid = '', comment = '', home = '', shell = '']) => {
    const numbers = { uid: parseUnixId(uid), gid: parseUnixId(gid) };
    if (numbers.uid === undefined || numbers.gid === undefined) return [];
    return [{ name, uid: numbers.uid, gid: numbers.gid, comment, home, shell, isLocal }];
  });
}

/** Parses lines of `name:x:gid:member,member`. */
function parseGroup(text: string, isLocal: boolean): readonly UnixGroup[] {
  return fieldsOf(text).flatMap(([name = '', , digits = '', list = '']) => {
    const gid = parseUnixId(digits);
    return gid === undefined ? [] : [{ name, gid, members: membersOf(list), isLocal }];
  });
}

const membersOf = (list: string): readonly string[] =>
  list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

/** Splits lines into fields. Lines that begin with `+` or `-` include another service and are no accounts. */
const fieldsOf = (text: string): readonly (readonly string[])[] =>
  text
    .split('\n')
    .filter((line) => /^[^-+#:]/.test(line))
    .map((line) => line.split(':'));
