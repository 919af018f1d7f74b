/** Lines of /etc/fstab. Only the line of one mount point is changed; every other byte stays. */
import { insertAt, lineNumbers, positionsOf, replaceRange, type TextLines, withoutLines } from '../edits/text-lines.js';
import { unescapeOctal } from './mount-table.js';

export const FSTAB = '/etc/fstab';

export interface FstabEntry {
  readonly source: string;
  readonly path: string;
  readonly type: string;
  readonly options: readonly string[];
  readonly dump: number;
  readonly pass: number;
}

/** A line, and the entry on it. */
interface FstabLine {
  readonly text: string;
  readonly entry: FstabEntry;
}

/** Parses a line; null for comments and blank lines. */
function parseLine(text: string): FstabLine | null {
  const words = text.trim().split(/[ \t]+/);
  const [source = '', path = '', type = 'auto', options = 'defaults', dump = '0', pass = '0'] = words;
  if (source === '' || source.startsWith('#') || path === '') return null;
  return {
    text,
    entry: {
      source: unescapeOctal(source),
      path: withoutSlash(unescapeOctal(path)),
      type,
      options: unescapeOctal(options).split(','),
      dump: Number(dump),
      pass: Number(pass),
    },
  };
}

const withoutSlash = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path);

const positionsFor = (path: string, lines: TextLines): readonly number[] =>
  positionsOf(lines, (text) => parseLine(text)?.entry.path === path);

/** Returns the line of a mount point, null without one, or why it is not known which one counts. */
export function fstabLine(path: string, lines: TextLines): FstabLine | null | { readonly refusal: string } {
  const [at, ...more] = positionsFor(path, lines);
  if (at === undefined) return null;
  if (more.length > 0) {
    const found = lineNumbers([at, ...more]);
    return { refusal: `lines ${found} of ${FSTAB} are both for ${path}; take all but one out` };
  }
  return parseLine(lines.lines[at]?.text ?? '');
}

/** Returns the text of an entry. */
export const formatEntry = ({ source, path, type, options, dump, pass }: FstabEntry): string =>
  `${escapeOctal(source)} ${escapeOctal(path)} ${type} ${escapeOctal(options.join(','))} ${dump} ${pass}`;

export const isSameEntry = (one: FstabEntry, other: FstabEntry): boolean => formatEntry(one) === formatEntry(other);

/** Puts the entry in the place of the line of its mount point, or at the end. */
export function putEntry(entry: FstabEntry, lines: TextLines): TextLines {
  const [at] = positionsFor(entry.path, lines);
  const text = formatEntry(entry);
  return at === undefined ? insertAt(lines, lines.lines.length, [text]) : replaceRange(lines, at, at + 1, [text]);
}

/** Takes the lines of a mount point out; the same object when there is none. */
export const takeEntry = (path: string, lines: TextLines): TextLines =>
  withoutLines(lines, (text) => parseLine(text)?.entry.path === path);

const escapeOctal = (text: string): string =>
  text.replaceAll(/[ \t\n\\#]/g, (one) => `\\${one.charCodeAt(0).toString(8).padStart(3, '0')}`);
