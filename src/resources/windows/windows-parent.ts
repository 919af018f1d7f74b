/** What a file or directory of Windows needs before it can be made: the directory that it lies in. */
import type { BodyProblem, ResourceKind } from '../kind.js';
import type { PathRules } from '../missing-parents.js';
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

export const WINDOWS_RULES: PathRules = {
  parentOf: (path) => parentOfWindowsPath(windowsPath(path)),
  identityOf: windowsIdentity,
  directoryKind: 'directory-windows',
};

/** Directories above the one that a path lies in, which come first when they are declared. */
export function aboveWindowsPath({ path }: WindowsPathBody): ReturnType<ResourceKind['requires']> {
  const above: { family: 'path'; identity: string }[] = [];
  let at = parentOfWindowsPath(parentOfWindowsPath(windowsPath(path)));
  for (; at.length > ROOT.length; at = parentOfWindowsPath(at)) {
    above.push({ family: 'path', identity: windowsIdentity(at) });
  }
  return above;
}

/** The form of the root of a drive. */
const ROOT = 'C:\\';
