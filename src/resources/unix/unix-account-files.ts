/** Reads lines of `/etc/passwd` and `/etc/group`, which `getent` writes alike. */
import { parseUnixId } from './unix-account-name.js';
import type { UnixGroup, UnixUser } from './unix-accounts.js';

/** Lines of `name:x:uid:gid:comment:home:shell`; what is none is passed over. */
export function parsePasswd(text: string, isLocal: boolean): readonly UnixUser[] {
  return fieldsOf(text).flatMap(([name = '', , uid = '', gid = '', , home = '', shell = '']) => {
    const numbers = { uid: parseUnixId(uid), gid: parseUnixId(gid) };
    if (numbers.uid === undefined || numbers.gid === undefined) return [];
    return [{ name, uid: numbers.uid, gid: numbers.gid, home, shell, isLocal }];
  });
}

/** Lines of `name:x:gid:member,member`. */
export function parseGroup(text: string, isLocal: boolean): readonly UnixGroup[] {
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

/** Lines that begin with `+` or `-` bring in the names of another service, and are no accounts. */
const fieldsOf = (text: string): readonly (readonly string[])[] =>
  text
    .split('\n')
    .filter((line) => /^[^-+#:]/.test(line))
    .map((line) => line.split(':'));
