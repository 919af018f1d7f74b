/** Unified diffs of texts. */
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import { type Line, textLines } from '../outcome.js';
import { plainText } from './paint.js';
import { diffLine } from './plan-lines.js';

interface TextSide {
  /** Label after `---` or `+++`. */
  readonly label: string;
  readonly text: string;
}

/** Maximum number of differing lines; beyond it the diff replaces the whole text. */
const MAX_EDITS = 5_000;

/** Returns the unified diff; empty if the texts are equal. */
export function textDiff(before: TextSide, after: TextSide): string {
  if (before.text === after.text) return '';
  const options = { context: 3, headerOptions: FILE_HEADERS_ONLY, maxEditLength: MAX_EDITS };
  const patch = createTwoFilesPatch(before.label, after.label, before.text, after.text, undefined, undefined, options);
  return patch ?? replaced(before, after);
}

function replaced(before: TextSide, after: TextSide): string {
  const signed = (sign: string, { text }: TextSide) => textLines(text).map((line) => `${sign}${plainText(line)}`);
  const [gone, come] = [signed('-', before), signed('+', after)];
  const range = `@@ -1,${gone.length} +1,${come.length} @@`;
  return `${[`--- ${before.label}`, `+++ ${after.label}`, range, ...gone, ...come].join('\n')}\n`;
}

/** Renders a diff in colours. */
export const textDiffLines = (diff: string): readonly Line[] =>
  textLines(diff).map((line) => {
    const text = plainText(line);
    return diffLine(text, text);
  });
