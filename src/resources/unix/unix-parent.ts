/** The directories that a file or directory of Unix lies in. */
import type { PathRules } from '../missing-parents.js';
import { parentOf } from './unix-path.js';

export const UNIX_RULES: PathRules = { parentOf, identityOf: (path) => path, directoryKind: 'directory-unix' };

/** Directories above the one that a path lies in, which come first when they are declared. */
export function aboveUnixPath({ path }: { readonly path: string }): readonly { family: 'path'; identity: string }[] {
  const above: { family: 'path'; identity: string }[] = [];
  for (let at = parentOf(parentOf(path)); at !== '/'; at = parentOf(at)) above.push({ family: 'path', identity: at });
  return above;
}
