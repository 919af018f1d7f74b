/**
 * Files beside a module: `source` takes one as the content of a file, or a whole directory of them, and `template` takes one that ends in
 * `.liquid`. A module names them by their paths, and its definition holds the SHA-256 of each.
 */
import { canonicalJson } from '../kernel/json.js';
import { isListPath } from './trees.js';

/** A file beside a module. */
export interface FileBeside {
  /** Hex. */
  readonly sha256: string;
  /** Bytes. */
  readonly size: number;
  /** Text of a template, or of the list of a directory; absent for other files. */
  readonly text?: string;
}

/** Returns a file by its path relative to the module, or the reason why it cannot be used. */
export type FindFile = (path: string) => FileBeside | string;

/** SHA-256 of files in hex, by path. */
export type FileDigests = Readonly<Record<string, string>>;

/** For texts without a directory, such as those of standard input. */
export const findNoFile: FindFile = () => 'is not there, because the module is read as a text without its directory';

/** Maximum number of files beside one module, those in directories included. */
export const MAX_FILES = 1000;
/** Maximum characters of a path. */
const MAX_PATH = 256;

const ENDING = '.liquid';

/** Returns true for the path of a template. */
export const isTemplatePath = (path: string): boolean => path.endsWith(ENDING);

/** Returns true for the path of a file whose text the parser needs. */
export const isTextPath = (path: string): boolean => isTemplatePath(path) || isListPath(path);

/** The files that a module names. Looks each up once. */
export class UsedFiles {
  /** Files that can be used, by path. */
  readonly found = new Map<string, FileBeside>();
  private readonly asked = new Map<string, FileBeside | string>();
  private readonly findFile: FindFile;

  constructor(findFile: FindFile) {
    this.findFile = findFile;
  }

  /** Returns a file, or the reason why it cannot be used. */
  find(path: string): FileBeside | string {
    const known = this.asked.get(path);
    if (known !== undefined) return known;
    const isTooMany = this.found.size >= MAX_FILES;
    const file =
      problemOfPath(isListPath(path) ? path.slice(0, -1) : path) ??
      (isTooMany ? `is one of more than ${MAX_FILES} files` : this.findFile(path));
    this.asked.set(path, file);
    if (typeof file !== 'string') this.found.set(path, file);
    return file;
  }
}

/** Returns why a path cannot name a file beside a module; null if it can. */
export function problemOfPath(path: string): string | null {
  if (path.length > MAX_PATH) return `is longer than ${MAX_PATH} characters`;
  if (/[\u0000-\u001f\u007f\\]/.test(path) || !path.isWellFormed()) {
    return 'holds a backslash or a character that cannot be printed; write it with "/"';
  }
  if (path.startsWith('/')) return 'is absolute; write it relative to the file of the module';
  const parts = path.split('/');
  if (parts.includes('..'))
    return 'leads out of the directory of the module; put the file beside the module or below it';
  if (parts.some((part) => part === '' || part === '.')) return 'has an empty part or "."; write it plainly';
  return null;
}

/**
 * Returns the text whose SHA-256 identifies a module: its own text, and with files beside it their digests. Two modules with
 * equal texts and other files differ.
 */
export const identityText = (source: string, files: FileDigests | undefined): string =>
  files === undefined || Object.keys(files).length === 0 ? source : `${source}\0${canonicalJson(files)}`;
