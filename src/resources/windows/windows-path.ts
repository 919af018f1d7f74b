/** Absolute Windows paths in modules: which are valid, their used and compared forms, and their parent directories. */

import type { BodyProblem, ResourceKind } from '../kind.js';
import type { PathRules } from '../missing-parents.js';
import { foldCase } from './windows-case.js';

const MAX_LENGTH = 4095;
const MAX_COMPONENT = 255;

const ABSOLUTE = /^[A-Za-z]:[\\/]/;
/** Characters that names cannot contain; a colon would name a stream of the file. */
const FORBIDDEN = /[<>:"|?*]/;
const CONTROL = /[\u0001-\u001f]/;
/** Device names, which exist in every directory with any extension. */
const DEVICE = /^(?:con|prn|aux|nul|clock\$|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])$/i;

/** Returns why a path is invalid, or null; it must be absolute, normalised, on a drive, and spelled as on the disk. */
export function problemOfWindowsPath(path: string): string | null {
  if (/^[A-Za-z]:\p{Cc}/u.test(path)) {
    return 'holds a control character: in double quotes a backslash is written twice, in single quotes as it is';
  }
  if (!ABSOLUTE.test(path)) return 'must be absolute and begin with a drive letter, such as "C:\\"';
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (/\p{Surrogate}/u.test(path)) return 'must be valid Unicode text';
  if (path.length === 3) return 'must not be the root of a drive';
  if (/[\\/]$/.test(path)) return 'must not end with a separator';
  for (const part of path.slice(3).split(/[\\/]/)) {
    const problem = problemOfComponent(part);
    if (problem !== null) return problem;
  }
  return path.length > MAX_LENGTH ? `is longer than ${MAX_LENGTH} characters` : null;
}

function problemOfComponent(part: string): string | null {
  if (part === '') return 'must not contain two separators in a row';
  if (part === '.' || part === '..') return `must not contain a "${part}" component`;
  const forbidden = FORBIDDEN.exec(part)?.[0];
  if (forbidden !== undefined) return `must not contain ${JSON.stringify(forbidden)} after the drive letter`;
  if (CONTROL.test(part)) return 'must not contain control characters';
  // Windows drops these characters, so the file would get another name.
  if (/[. ]$/.test(part)) return 'has a component that ends with a dot or a space';
  const [name = ''] = part.split('.');
  if (DEVICE.test(name.trimEnd())) return `has a component that names a device: ${part}`;
  return part.length > MAX_COMPONENT ? `has a component longer than ${MAX_COMPONENT} characters` : null;
}

/** Returns the used form: an upper-case drive letter and backslashes. */
export const windowsPath = (path: string): string =>
  `${path.slice(0, 1).toUpperCase()}${path.slice(1).replaceAll('/', '\\')}`;

/** Returns the compared form, which is equal for paths of the same file. */
export const windowsIdentity = (path: string): string => {
  const used = windowsPath(path);
  return `${used.slice(0, 1)}${foldCase(used.slice(1))}`;
};

/** Returns the parent of a path in the form of `windowsPath`; `C:\` directly below the root. */
export function parentOfWindowsPath(path: string): string {
  const at = path.lastIndexOf('\\');
  return at <= 2 ? path.slice(0, 3) : path.slice(0, at);
}

/** A body with a path. */
interface WindowsPathBody {
  readonly path: string;
}

/** Checks the path of a file or directory. */
export function checkWindowsPath(body: WindowsPathBody): readonly BodyProblem[] {
  const problem = problemOfWindowsPath(body.path);
  return problem === null ? [] : [{ path: '/path', message: `path ${problem}` }];
}

/** Returns the parent directory, which must come first if it is declared. */
export const requiredWindowsParent = ({ path }: WindowsPathBody): ReturnType<ResourceKind['requires']> => [
  { family: 'path', identity: windowsIdentity(parentOfWindowsPath(windowsPath(path))) },
];

export const WINDOWS_RULES: PathRules = {
  parentOf: (path) => parentOfWindowsPath(windowsPath(path)),
  identityOf: windowsIdentity,
  directoryKind: 'directory-windows',
};

/** Returns the ancestors above the parent directory, which come first if they are declared. */
export function aboveWindowsPath({ path }: WindowsPathBody): ReturnType<ResourceKind['requires']> {
  const above: { family: 'path'; identity: string }[] = [];
  let at = parentOfWindowsPath(parentOfWindowsPath(windowsPath(path)));
  for (; at.length > ROOT.length; at = parentOfWindowsPath(at)) {
    above.push({ family: 'path', identity: windowsIdentity(at) });
  }
  return above;
}

/** Form of the root of a drive. */
const ROOT = 'C:\\';
