/** A text as lines whose line ends are kept, so that a change of one line leaves every other byte as it is. */

export interface Line {
  readonly text: string;
  /** Line end: LF, CR LF, or nothing at the end of a text without one. */
  readonly end: string;
}

export interface TextLines {
  /** Byte order mark, or nothing. */
  readonly mark: string;
  readonly lines: readonly Line[];
  /** Line end of new lines: that of the first line. */
  readonly newEnd: string;
}

const BYTE_ORDER_MARK = '\uFEFF';

export function linesOf(content: string): TextLines {
  const mark = content.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : '';
  const parts = content.slice(mark.length).split('\n');
  const last = parts.pop() ?? '';
  const lines = parts.map((part) =>
    part.endsWith('\r') ? { text: part.slice(0, -1), end: '\r\n' } : { text: part, end: '\n' },
  );
  const newEnd = lines[0]?.end ?? '\n';
  return { mark, lines: last === '' ? lines : [...lines, { text: last, end: '' }], newEnd };
}

export const contentOf = ({ mark, lines }: TextLines): string =>
  mark + lines.map(({ text, end }) => text + end).join('');

/** Inserts lines before the one at a position; a last line without a line end gets one. */
export function insertAt(all: TextLines, at: number, texts: readonly string[]): TextLines {
  const { newEnd } = all;
  const before = all.lines.slice(0, at).map((line) => (line.end === '' ? { ...line, end: newEnd } : line));
  const added = texts.map((text) => ({ text, end: newEnd }));
  return { ...all, lines: [...before, ...added, ...all.lines.slice(at)] };
}

/** Replaces lines from one position up to, but not including, another. The last new line keeps the end of the last old one. */
export function replaceRange(all: TextLines, from: number, to: number, texts: readonly string[]): TextLines {
  const lastEnd = all.lines[to - 1]?.end ?? all.newEnd;
  const added = texts.map((text, at) => ({ text, end: at === texts.length - 1 ? lastEnd : all.newEnd }));
  return { ...all, lines: [...all.lines.slice(0, from), ...added, ...all.lines.slice(to)] };
}

/** Returns the text without some lines; the same object when none of them is there. */
export function withoutLines(all: TextLines, isGone: (line: string, at: number) => boolean): TextLines {
  const lines = all.lines.filter(({ text }, at) => !isGone(text, at));
  return lines.length === all.lines.length ? all : { ...all, lines };
}

/** Returns the positions of lines for which the test is true. */
export const positionsOf = ({ lines }: TextLines, test: (line: string) => boolean): readonly number[] =>
  lines.flatMap(({ text }, at) => (test(text) ? [at] : []));

/** Formats positions as numbers of lines: `2, 5 and 9`. */
export function lineNumbers(positions: readonly number[]): string {
  const numbers = positions.map((at) => String(at + 1));
  const [last = '', ...first] = numbers.toReversed();
  return first.length === 0 ? last : `${first.toReversed().join(', ')} and ${last}`;
}
