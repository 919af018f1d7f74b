/** The directory that a file or directory lies in has to be there first. */
import type { PathFact } from '../host.js';
import type { Decision, PlanContext } from '../kind.js';
import { parentOf } from './unix-path.js';

/** Why nothing can be made at an absent path, or null when its directory is there or can come with something earlier. */
export function missingParent(
  path: string,
  have: Extract<PathFact, { type: 'absent' }>,
  context: PlanContext,
): Extract<Decision, { action: 'fail' }> | null {
  const parent = parentOf(path);
  if (have.parent === 'directory' || context.declares('path', parent, 'directory-unix') || context.mayAppear)
    return null;
  const message =
    have.parent === 'absent' && !context.declares('path', parent)
      ? `the directory ${parent} does not exist; declare it as a directory-unix resource before this one`
      : `${parent} is not a directory, so nothing can lie in it`;
  return { action: 'fail', code: 'parent_missing', message };
}
