/** Absolute Unix paths in modules: which are valid, and their parent directories. */
import type { PathRules } from '../missing-parents.js';

/** Bytes of UTF-8, as the system counts them. */
const MAX_PATH_BYTES = 4095;
const MAX_NAME_BYTES = 255;

/** Valid paths of printable ASCII, which nearly all are; one match decides. */
const PLAIN = /^(?:\/(?!\.\.?(?:\/|$))[ -.0-~]{1,255})+$/;

/** Returns why a path is invalid, or null; it must be absolute, normalised and without NUL. */
export function problemOfUnixPath(path: string): string | null {
  if (path.length <= MAX_PATH_BYTES && PLAIN.test(path)) return null;
  if (!path.startsWith('/')) return 'must be an absolute path that begins with "/"';
  if (path.includes('\0')) return 'must not contain a NUL character';
  if (/\p{Surrogate}/u.test(path)) return 'must be valid Unicode text';
  if (path === '/') return 'must not be the root directory';
  if (path.endsWith('/')) return 'must not end with "/"';
  for (const part of path.slice(1).split('/')) {
    if (part === '') return 'must not contain "//"';
    if (part === '.' || part === '..') return `must not contain a "${part}" component`;
    if (utf8Length(part) > MAX_NAME_BYTES) return `has a component longer than ${MAX_NAME_BYTES} bytes`;
  }
  return utf8Length(path) > MAX_PATH_BYTES ? `is longer than ${MAX_PATH_BYTES} bytes` : null;
}

/** Returns the bytes of valid Unicode text in UTF-8. */
export const utf8Length = (text: string): number => encodeURIComponent(text).replace(/%[0-9A-F]{2}/g, '_').length;

/** Returns the parent directory of a path; `/` directly below the root. */
export function parentOf(path: string): string {
  const at = path.lastIndexOf('/');
  return at <= 0 ? '/' : path.slice(0, at);
}

/** The path rules of Unix. */
export const UNIX_RULES: PathRules = { parentOf, identityOf: (path) => path, directoryKind: 'directory-unix' };

interface Ancestor {
  readonly family: 'path' | 'mount-linux';
  readonly identity: string;
}

/** Returns the parent directory, and what is mounted there, which come first if they are declared. */
export const parentOfUnixPath = (path: string): readonly Ancestor[] => holdersAt(parentOf(path));

const holdersAt = (identity: string): readonly Ancestor[] => [
  { family: 'path', identity },
  { family: 'mount-linux', identity },
];

/** Returns the ancestors above the parent directory, which come first if they are declared. */
export function aboveUnixPath({ path }: { readonly path: string }): readonly Ancestor[] {
  const above: Ancestor[] = [];
  for (let at = parentOf(parentOf(path)); at !== '/'; at = parentOf(at)) above.push(...holdersAt(at));
  return above;
}
