/** A user of the machine as its list of users has it, whatever keeps that list. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { textOf } from './text-of.js';

export interface LoginUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** Empty when none is named, which means the standard shell. */
  readonly shell: string;
}

/** The entry with that name or user id in lines of `passwd(5)`; null when there is none. */
export function findUser(text: string, wanted: string | number): LoginUser | null {
  for (const line of text.split('\n')) {
    const [name = '', , uid = '', gid = '', , home = '', shell = ''] = line.split(':');
    if (!/^\d+$/.test(uid) || !/^\d+$/.test(gid)) continue;
    const user = { name, uid: Number(uid), gid: Number(gid), home: home || '/', shell: shell.trim() };
    if (user.name === wanted || user.uid === wanted) return user;
  }
  return null;
}

const run = promisify(execFile);

/** Null when the machine knows no such user. */
export async function readUser(wanted: string | number): Promise<LoginUser | null> {
  const local = findUser(textOf('/etc/passwd'), wanted);
  if (local !== null) return local;
  try {
    const env = { PATH: '/usr/bin:/bin' };
    const { stdout } = await run('getent', ['passwd', '--', String(wanted)], { env, timeout: 5_000 });
    return findUser(stdout, wanted);
  } catch {
    // There is none, or no such program.
    return null;
  }
}
