/** What a file or directory of Windows needs before it can be made: the directory that it lies in. */
import type { PathFact } from '../host.js';
import type { BodyProblem, Decision, PlanContext, ResourceKind } from '../kind.js';
import { parentOfWindowsPath, problemOfWindowsPath, windowsIdentity, windowsPath } from './windows-path.js';

interface WindowsPathBody {
  readonly path: string;
}

/** Rules that files and directories share beyond their schemas. */
export function checkWindowsPath(body: WindowsPathBody): readonly BodyProblem[] {
  const problem = problemOfWindowsPath(body.path);
  return problem === null ? [] : [{ path: '/path', message: `path ${problem}` }];
}

/** The directory that has to be there first when it is declared too. */
export const requiredWindowsParent = ({ path }: WindowsPathBody): ReturnType<ResourceKind['requires']> => [
  { family: 'path', identity: windowsIdentity(parentOfWindowsPath(windowsPath(path))) },
];

/** Why nothing can be made at an absent path, or null when its directory is there or declared earlier. */
export function missingWindowsParent(
  path: string,
  have: Extract<PathFact, { type: 'absent' }>,
  context: PlanContext,
): Extract<Decision, { action: 'fail' }> | null {
  const parent = parentOfWindowsPath(windowsPath(path));
  const identity = windowsIdentity(parent);
  if (have.parent === 'directory' || context.declares('path', identity, 'directory-windows')) return null;
  const message =
    have.parent === 'absent' && !context.declares('path', identity)
      ? `the directory ${parent} does not exist; declare it as a directory-windows resource before this one`
      : `${parent} is not a directory, so nothing can lie in it`;
  return { action: 'fail', code: 'parent_missing', message };
}
