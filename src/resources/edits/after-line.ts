/** The place of something new in a file: behind a line that matches, or at the end. */
import * as Type from 'typebox';
import { readPattern } from '../../kernel/pattern.js';
import { optional } from '../../kernel/schema.js';
import type { BodyProblem } from '../kind.js';
import type { EditRefusal } from './file-edit.js';
import { insertAt, positionsOf, type TextLines } from './text-lines.js';

export const afterField = optional(
  Type.String({ minLength: 1, description: 'Pattern of the line behind which it comes [default: at the end]' }),
);

/** Returns the mistakes of a pattern. */
export function checkPattern(name: string, source: unknown): readonly BodyProblem[] {
  const pattern = typeof source === 'string' ? readPattern(source) : null;
  return typeof pattern === 'string' ? [{ path: `/${name}`, message: pattern }] : [];
}

/** Returns the positions of the lines that match a pattern; none for a pattern that is wrong. */
export function matching(lines: TextLines, source: string): readonly number[] {
  const pattern = readPattern(source);
  return typeof pattern === 'string' ? [] : positionsOf(lines, (line) => pattern.test(line));
}

/** Inserts lines behind the last line that matches, or at the end without a pattern. */
export function insertAfter(
  { path, after }: { readonly path: string; readonly after?: string | null },
  lines: TextLines,
  texts: readonly string[],
): TextLines | EditRefusal {
  if (after == null) return insertAt(lines, lines.lines.length, texts);
  const place = matching(lines, after).at(-1);
  if (place !== undefined) return insertAt(lines, place + 1, texts);
  return {
    refusal: `no line of ${path} matches "after" (${after}); change the pattern, or leave it out for the end of the file`,
  };
}
