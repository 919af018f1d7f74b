/**
 * Lets a command of root act as the owner of the files that it works on, as with sudo and a user's home directory:
 * so root leaves no files that their owner cannot use, and follows no link with more rights than the owner has.
 */
import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** User and group that own a file or a directory. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Runs `work` with the effective user and group of the owner; null runs it as this user. */
export async function asOwner<T>(owner: Owner | null, work: () => T | Promise<T>): Promise<T> {
  if (owner === null) return work();
  const before = become(owner);
  try {
    return await work();
  } finally {
    become(before);
  }
}

/** Runs `work` as root within `asOwner`; null runs it as this user. */
export const asCaller = <T>(owner: Owner | null, work: () => T | Promise<T>): Promise<T> =>
  asOwner(owner === null ? null : { uid: 0, gid: 0 }, work);

/**
 * Runs `work`, which writes the file, as the owner of its directory if this is root and the directory another user's.
 * A missing directory counts as that of its nearest existing parent.
 */
export function asOwnerOf<T>(file: string, work: () => T): T {
  const owner = process.geteuid?.() === 0 ? directoryOwner(resolve(file)) : null;
  if (owner === null || owner.uid === 0) return work();
  const before = become(owner);
  try {
    return work();
  } finally {
    become(before);
  }
}

function directoryOwner(file: string): Owner | null {
  for (let path = dirname(file); ; path = dirname(path)) {
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined) return { uid: found.uid, gid: found.gid };
    if (path === dirname(path)) return null;
  }
}

/** Changes the effective user and group, and returns those of before. */
function become({ uid, gid }: Owner): Owner {
  const before = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  // Only root may change its group: it goes first on the way down, and last on the way up.
  if (uid !== 0) process.setegid?.(gid);
  process.seteuid?.(uid);
  if (uid === 0) process.setegid?.(gid);
  return before;
}
