/** Permission modes, and the rules for changing owner or mode of objects that an unprivileged user may have made. */
import type { Exposure, Metadata, Ownership } from '../host.js';

/** Three or four octal digits. Modes are quoted strings, because YAML reads a bare 0644 as the decimal number 644. */
export const MODE_PATTERN = '^[0-7]{3,4}$';

/** Parses a mode that matches `MODE_PATTERN`. */
export const parseMode = (mode: string): number => Number.parseInt(mode, 8);

/** Returns four octal digits, as `stat` prints them. */
export const formatMode = (mode: number): string => mode.toString(8).padStart(4, '0');

/** Setuid and setgid: programs that run with the rights of their owner or group. */
const SPECIAL = 0o6000;
const WRITE_FOR_GROUP = 0o020;
const WRITE_FOR_OTHERS = 0o002;
const PERMISSIONS = 0o7777;

export interface Takeover {
  readonly isNewOwner: boolean;
  readonly isNewGroup: boolean;
  /** True when the module names the group. */
  readonly isGroupDeclared: boolean;
  /** True when the content is written too. */
  readonly isReplaced: boolean;
}

/**
 * Returns the part of a mode that stays when the module declares none. Another owner, group or content clears setuid and
 * setgid; another owner or group clears write for others; and another owner clears write for a group that only the former
 * owner has chosen.
 */
export function keptMode(mode: number, { isNewOwner, isNewGroup, isGroupDeclared, isReplaced }: Takeover): number {
  let lost = isReplaced ? SPECIAL : 0;
  if (isNewOwner || isNewGroup) lost |= SPECIAL | WRITE_FOR_OTHERS;
  if (isNewOwner && !isGroupDeclared) lost |= WRITE_FOR_GROUP;
  return mode & PERMISSIONS & ~lost;
}

/** True when the owner is neither root nor the user of this process. */
export const isUnprivileged = (uid: number, own: Ownership): boolean => uid !== 0 && uid !== own.uid;

/**
 * Returns the owner and group that a file with a secret gets in place of the ones it has: those of this process where an
 * unprivileged user made the file and the module declares no other. Null keeps what is there or declared.
 */
export function ownersOfSecret(
  there: Ownership,
  declared: { readonly uid: number | null; readonly gid: number | null },
  own: Ownership,
): { readonly uid: number | null; readonly gid: number | null } {
  if (!isUnprivileged(there.uid, own)) return declared;
  const uid = declared.uid ?? own.uid;
  return { uid, gid: declared.gid ?? (uid === there.uid ? null : own.gid) };
}

interface InPlaceChange {
  readonly path: string;
  readonly expect: 'file' | 'directory';
  /** The result. */
  readonly after: Metadata;
}

/**
 * Returns why owner, group or mode must not be changed in place, because an unprivileged user would gain something they
 * brought there; null when all is well.
 */
export function refusalOfTakeover(
  there: Metadata & Exposure,
  { path, expect, after }: InPlaceChange,
  own: Ownership,
): string | null {
  const isNewOwner = after.uid !== there.uid;
  const isGiven = isNewOwner || after.gid !== there.gid;
  const hasNewSpecial = isSpecialProgram(expect, after) && (isGiven || (after.mode & SPECIAL & ~there.mode) !== 0);
  const what = isGiven ? 'its owner and group are' : 'its mode is';
  const remedy =
    expect === 'file'
      ? 'declare its content, or remove it so that it is created again'
      : 'remove it so that it is created again, or change it by hand';
  if (hasNewSpecial && (there.exposedTo !== undefined || isUnprivileged(there.uid, own))) {
    return `an unprivileged user could have written ${path}, so it does not get mode ${formatMode(after.mode)}; ${remedy}`;
  }
  const isOpened = (after.mode & ~there.mode & 0o777) !== 0;
  const isUnsafe = there.exposedTo === 'others' ? isGiven || isOpened : there.exposedTo === 'owner' && isNewOwner;
  if (!isUnsafe) return null;
  return `an unprivileged user could have put ${path} there, so ${what} not changed; ${remedy}`;
}

const isSpecialProgram = (expect: 'file' | 'directory', { mode }: Metadata): boolean =>
  expect === 'file' && (mode & SPECIAL) !== 0;
