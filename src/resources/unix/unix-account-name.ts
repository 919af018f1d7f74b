/** Names of users and groups on Unix, and groups by their name or number. */
import type { BodyProblem } from '../kind.js';

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
