/** Saves users and groups of Linux as the account files have them. Home directories stay as they are. */
import { existsSync, readFileSync } from 'node:fs';
import { systemCodeOf } from '../../kernel/fault.js';
import { commandFailure, exitedWith } from '../../resources/command.js';
import type { Host } from '../../resources/host.js';
import { keyFile } from '../../resources/unix/authorized-keys.js';
import type { Keeper } from './keeper.js';
import type { SavedPath } from './saved-path.js';

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
  /** The file with the user's public keys, if the apply may change it. */
  readonly keys?: SavedPath;
}

const LINUX_ONLY = 'accounts can be restored on Linux alone';
const nameIn = (body: object): string => ('name' in body ? String(body.name) : '');

export const groupKeeper: Keeper<SavedGroup> = {
  save: async (bodies, { host }) =>
    bodies.map((body) => (host.platform === 'linux' ? groupNow(nameIn(body)) : LINUX_ONLY)),
  restore: async (saved, phase, { host }) => (phase === 'state' ? restoreGroup(host, saved) : null),
};

export const userKeeper: Keeper<SavedUser> = {
  save: async (bodies, { host, paths }) => {
    const states: (SavedUser | string)[] = [];
    for (const body of bodies) {
      const [keys] = await paths.save(keyFileOf(body) ?? []);
      if (typeof keys === 'string') states.push(keys);
      else states.push(host.platform === 'linux' ? { ...userNow(nameIn(body)), ...(keys && { keys }) } : LINUX_ONLY);
    }
    return states;
  },
  async restore(saved, phase, { host, paths }) {
    if (phase !== 'state') return null;
    const failure = await restoreUser(host, saved);
    return failure ?? (saved.keys === undefined ? null : paths.restore(saved.keys));
  },
};

/** The file with the public keys of a user, who may be missing. */
export const keyFileKeeper: Keeper<{ readonly keys: SavedPath | null }> = {
  save: async (bodies, { paths }) => {
    const states: ({ readonly keys: SavedPath | null } | string)[] = [];
    for (const body of bodies) {
      const [keys = null] = await paths.save(keyFileOf(body) ?? []);
      states.push(typeof keys === 'string' ? keys : { keys });
    }
    return states;
  },
  restore: async ({ keys }, phase, { paths }) => (phase === 'state' && keys !== null ? paths.restore(keys) : null),
};

/** Returns the file with public keys that a body changes, as a list of one; null for none, or for a user who is missing. */
export function keyFileOf(body: object): readonly [string] | null {
  const name = 'user' in body ? String(body.user) : 'authorized_keys' in body ? nameIn(body) : '';
  const entry = name === '' ? null : entryOf('/etc/passwd', name);
  const home = 'home' in body && typeof body.home === 'string' ? body.home : entry?.[5];
  return entry === null || home === undefined || home === '' ? null : [keyFile(home)];
}

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
  return failure ?? (hasOtherPassword(saved, now) ? restorePassword(host, saved) : null);
}

/** True for an account with another password, also one that was made again before a crash and has not got its own back. */
const hasOtherPassword = (saved: SavedUser, now: SavedUser): boolean =>
  saved.shadow !== null && now.shadow?.[1] !== saved.shadow[1];

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
