/** Fits lines to the columns of a screen: cuts or wraps them. Their texts come out sanitised. */
import { type Line, type Span, styled } from '../outcome.js';
import { plainText, spansOf } from '../render/paint.js';
import { cutToWidth, sanitizeLine, widthOf } from '../render/terminal-text.js';

/** Cuts a line; a cut line ends with an ellipsis. */
export function cutLine(line: Line, columns: number): readonly Span[] {
  const spans = clean(line);
  if (widthOf(plainText(spans)) <= columns) return spans;
  const kept = cutToWidth(plainText(spans), columns);
  // All but the ellipsis is the beginning of the text.
  return [...slice(spans, 0, kept.length - 1), '…'];
}

/** Breaks a line between words, and long words anywhere. Further lines are indented. */
export function wrapLine(line: Line, columns: number, indent = 4): readonly (readonly Span[])[] {
  const spans = clean(line);
  const text = plainText(spans);
  if (widthOf(text) <= columns) return [spans];
  const lines: (readonly Span[])[] = [];
  let from = 0;
  while (from < text.length) {
    const lead = lines.length === 0 ? '' : ' '.repeat(Math.min(indent, Math.max(0, columns - 1)));
    const end = breakAfter(text, from, columns - lead.length);
    lines.push(lead === '' ? slice(spans, from, end) : [lead, ...slice(spans, from, end)]);
    from = end;
    while (text[from] === ' ') from += 1;
  }
  return lines;
}

/** Returns where a line that begins at `from` ends: behind the last part or word that fits, and behind at least one character. */
function breakAfter(text: string, from: number, columns: number): number {
  let width = 0;
  let at = from;
  let word = from;
  let part = from;
  for (const character of text.slice(from)) {
    width += widthOf(character);
    if (width > columns) break;
    at += character.length;
    if (character !== ' ') continue;
    // Two spaces separate parts.
    if (word === at - 1 && part !== word) part = at;
    word = at;
  }
  if (at >= text.length) return text.length;
  if (at === from) return from + String.fromCodePoint(text.codePointAt(from) ?? 0x20).length;
  const isLong = (place: number) => place - from >= (at - from) / 2;
  if (isLong(part)) return part;
  return text[at] !== ' ' && isLong(word) ? word : at;
}

const clean = (line: Line): readonly Span[] =>
  spansOf(line).map((span): Span => {
    const text = sanitizeLine(plainText(span));
    return typeof span === 'string' ? text : styled(span.style, text);
  });

/** Returns the part of spans between two places in their joined text. */
function slice(spans: readonly Span[], from: number, to: number): readonly Span[] {
  let at = 0;
  return spans.flatMap((span): readonly Span[] => {
    const text = plainText(span);
    const part = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    at += text.length;
    if (part === '') return [];
    return [typeof span === 'string' ? part : styled(span.style, part)];
  });
}
