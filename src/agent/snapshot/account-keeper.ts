/** Saves users and groups of Linux as the account files have them. Home directories stay as they are. */
import { existsSync, readFileSync } from 'node:fs';
import { systemCodeOf } from '../../kernel/fault.js';
import { commandFailure, exitedWith } from '../../resources/command.js';
import type { Host } from '../../resources/host.js';
import type { Keeper } from './keeper.js';

interface SavedGroup {
  readonly name: string;
  /** Null when there was no such group. */
  readonly gid: string | null;
  readonly members: readonly string[];
}

interface SavedUser {
  readonly name: string;
  /** Fields of `/etc/passwd` and `/etc/shadow`; null when there was no such user. */
  readonly passwd: readonly string[] | null;
  readonly shadow: readonly string[] | null;
  /** Supplementary groups, by name. */
  readonly groups: readonly string[];
  /** The group of the same name, which goes and comes with its user. */
  readonly own: SavedGroup;
}

const LINUX_ONLY = 'accounts can be restored on Linux alone';
const nameIn = (body: object): string => ('name' in body ? String(body.name) : '');

export const groupKeeper: Keeper<SavedGroup> = {
  save: async (bodies, { host }) =>
    bodies.map((body) => (host.platform === 'linux' ? groupNow(nameIn(body)) : LINUX_ONLY)),
  restore: async (saved, phase, { host }) => (phase === 'state' ? restoreGroup(host, saved) : null),
};

export const userKeeper: Keeper<SavedUser> = {
  save: async (bodies, { host }) =>
    bodies.map((body) => (host.platform === 'linux' ? userNow(nameIn(body)) : LINUX_ONLY)),
  restore: async (saved, phase, { host }) => (phase === 'state' ? restoreUser(host, saved) : null),
};

async function restoreGroup(host: Host, { name, gid, members }: SavedGroup): Promise<string | null> {
  const now = groupNow(name);
  if (gid === null) return now.gid === null ? null : run(host, ['groupdel', '--', name]);
  if (now.gid === null) {
    const failure = await run(host, ['groupadd', '-g', gid, '--', name]);
    if (failure !== null) return failure;
  } else if (now.gid !== gid) {
    const failure = await run(host, ['groupmod', '-g', gid, '--', name]);
    if (failure !== null) return failure;
  }
  const known = members.filter((member) => userNow(member).passwd !== null);
  if (groupNow(name).members.join() === known.join()) return null;
  return run(host, ['gpasswd', '-M', known.join(','), name]);
}

async function restoreUser(host: Host, saved: SavedUser): Promise<string | null> {
  const { name, passwd, own } = saved;
  const now = userNow(name);
  if (passwd === null) {
    if (now.passwd === null) return null;
    const home = now.passwd[5] ?? '';
    const failure = await run(host, ['userdel', '--', name]);
    if (failure !== null) return failure;
    const grouped = own.gid === null ? await restoreGroup(host, own) : null;
    if (grouped !== null) return grouped;
    return home !== '' && existsSync(home) ? `the account is removed again, its home directory ${home} stays` : null;
  }
  const [, , uid = '', gid = '', comment = '', home = '', shell = ''] = passwd;
  const fields = ['-u', uid, '-g', gid, '-c', comment, '-d', home, '-s', shell, '-G', saved.groups.join(',')];
  if (now.passwd === null) {
    if (own.gid !== null) await restoreGroup(host, { ...own, members: [] });
    const failure = await run(host, ['useradd', '-M', '-N', ...fields, '--', name]);
    return failure ?? restorePassword(host, saved);
  }
  const failure = isSameUser(saved, now) ? null : await run(host, ['usermod', ...fields, '--', name]);
  return failure ?? (isUnfinished(saved, now) ? restorePassword(host, saved) : null);
}

/** Hash of an account that `useradd` has made and that has no password yet. */
const NO_PASSWORD = '!';

/** True for an account that was made again before a crash and has not got its password back. */
const isUnfinished = (saved: SavedUser, now: SavedUser): boolean =>
  now.shadow?.[1] === NO_PASSWORD && saved.shadow !== null && saved.shadow[1] !== NO_PASSWORD;

const isSameUser = (saved: SavedUser, now: SavedUser): boolean =>
  JSON.stringify([saved.passwd, saved.groups]) === JSON.stringify([now.passwd, now.groups]);

/** Puts the password and its ageing back; the hash travels on standard input, which other users cannot see. */
async function restorePassword(host: Host, { name, shadow }: SavedUser): Promise<string | null> {
  if (shadow === null) return null;
  const [, hash = '!', last = '', least = '', most = '', warn = '', inactive = '', expiry = ''] = shadow;
  const failure = await run(host, ['chpasswd', '-e'], `${name}:${hash}\n`);
  if (failure !== null) return failure;
  const ageing = Object.entries({ '-d': last, '-m': least, '-M': most, '-W': warn, '-I': inactive, '-E': expiry });
  const given = ageing.filter(([, value]) => value !== '').flat();
  return given.length === 0 ? null : run(host, ['chage', ...given, '--', name]);
}

function userNow(name: string): SavedUser {
  return {
    name,
    passwd: entryOf('/etc/passwd', name),
    shadow: entryOf('/etc/shadow', name),
    groups: entriesOf('/etc/group')
      .filter(([, , , members = '']) => members.split(',').includes(name))
      .map(([group = '']) => group),
    own: groupNow(name),
  };
}

function groupNow(name: string): SavedGroup {
  const [, , gid = null, members = ''] = entryOf('/etc/group', name) ?? [];
  return { name, gid, members: members.split(',').filter((member) => member !== '') };
}

const entryOf = (file: string, name: string): readonly string[] | null =>
  entriesOf(file).find(([first]) => first === name) ?? null;

function entriesOf(file: string): readonly (readonly string[])[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split(':'));
  } catch (error) {
    // Only root may read the passwords.
    if (systemCodeOf(error) === 'EACCES' || systemCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

/** Returns null on success, or what the program says. */
export async function run(host: Host, argv: readonly [string, ...string[]], input?: string): Promise<string | null> {
  const command = { argv, ...(input === undefined ? {} : { input }) };
  const result = await host.run(command);
  return exitedWith(result, 0) ? null : commandFailure(command, result).message;
}
