/** The paths that the settings of the machine permit copies to read and write. */
import { posix } from 'node:path';
import type { CopyDirection, CopyTarget } from '../../kernel/copy-target.js';
import { Fault } from '../../kernel/fault.js';

/** Setting with the permitted paths of each direction. */
export const COPY_SETTINGS = { read: 'copy.read', write: 'copy.write' } as const;

/** Returns whether a path is one of the entries, or below one. */
export function permits(entries: readonly string[], path: string): boolean {
  const plain = withoutEnd(path);
  return entries.some((entry) => {
    const at = withoutEnd(entry);
    return plain === at || plain.startsWith(at === '/' ? '/' : `${at}/`);
  });
}

/** Throws `copy_refused` for a path that the entries do not permit. Looks at the text alone. */
export function requirePermitted({ copy, at }: CopyTarget, entries: readonly string[]): void {
  if (!permits(entries, at)) throw notPermitted(copy, at, entries);
}

/** @param path the refused path, as the operator named it @param real what it leads to, if that is another */
export function notPermitted(
  copy: CopyDirection,
  path: string,
  entries: readonly string[],
  real = withoutEnd(path),
): Fault {
  const leads = withoutEnd(path) === real ? '' : `, which leads to ${real}`;
  const message =
    entries.length === 0
      ? `this agent permits orch cp to ${copy} nothing`
      : `this agent does not permit orch cp to ${copy} ${withoutEnd(path)}${leads}`;
  return new Fault('copy_refused', `${message}; ${COPY_SETTINGS[copy]} would have to name ${withoutEnd(real)}`);
}

/** Returns the path without `..`, doubled slashes and a slash at its end. */
function withoutEnd(path: string): string {
  const plain = posix.normalize(path);
  return plain.length > 1 && plain.endsWith('/') ? plain.slice(0, -1) : plain;
}
