/** The unified diff of a text content, with every secret masked and its length bounded. */
import { createTwoFilesPatch } from 'diff';
import { mask, maskCounterpart, type Span } from '../../kernel/tainted.js';
import { MAX_DIFF_CHARACTERS } from '../../resources/result.js';

export interface DiffInput {
  /** What stands in the header, such as a path. */
  readonly label: string;
  readonly before: string | null;
  readonly after: string | null;
  /** The secret parts of `after`. */
  readonly spans: readonly Span[] | undefined;
}

/** Lines that are compared at most: beyond that only the sizes are told, for the comparison is quadratic at worst. */
const MAX_LINES = 20_000;
const MAX_EDITS = 4_000;

/** null when there is nothing to compare. */
export function textDiff({ label, before, after, spans }: DiffInput): string | null {
  if (before === null && after === null) return null;
  const old = maskCounterpart(before ?? '', spans);
  const next = mask(after ?? '', spans);
  const lines = countLines(old) + countLines(next);
  const patch =
    lines > MAX_LINES
      ? undefined
      : createTwoFilesPatch(header('a', label, before), header('b', label, after), old, next, undefined, undefined, {
          context: 3,
          maxEditLength: MAX_EDITS,
        });
  if (patch === undefined)
    return `(too different to show: ${countLines(old)} lines before, ${countLines(next)} after)\n`;
  const text = patch.replace(/^=+\n/, '');
  if (text.length <= MAX_DIFF_CHARACTERS) return text;
  const cut = text.slice(0, MAX_DIFF_CHARACTERS);
  return `${cut.slice(0, cut.lastIndexOf('\n') + 1)}(the rest of the diff is left out: ${text.length} characters in all)\n`;
}

const header = (side: 'a' | 'b', label: string, text: string | null): string =>
  text === null ? '/dev/null' : side + label;

function countLines(text: string): number {
  let count = text === '' ? 0 : 1;
  for (let at = text.indexOf('\n'); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}
