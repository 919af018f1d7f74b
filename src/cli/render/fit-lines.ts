/** Fits lines to the columns of a screen: cuts or wraps them. Their texts come out sanitised. */
import { HANG, type Line, type Span, styled } from '../outcome.js';
import { plainText, spansOf } from './paint.js';
import { cutToWidth, sanitizeLine, widthOf } from './terminal-text.js';

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

/**
 * Breaks a line between words and never within one, so that keys, paths and names can be copied. A command of orch behind a colon
 * stays whole where a line has room for it.
 * @param columns columns of the terminal
 * @param hang columns by which further lines are indented; an indented line hangs by more than its own indentation
 * @param first characters at the beginning that stay together with the word behind them, such as a label
 */
export function wrapAtWords(line: Line, columns: number, hang: number, first = 0): readonly (readonly Span[])[] {
  const spans = clean(line);
  const text = plainText(spans);
  if (widthOf(text) <= columns) return [spans];
  const own = text.length - text.trimStart().length;
  const wanted = own === 0 ? hang : Math.max(hang, own + HANG);
  const indent = ' '.repeat(columns - wanted < NARROWEST ? 0 : wanted);
  const lines: (readonly Span[])[] = [];
  const words = wordsOf(text, columns - indent.length, first);
  for (let at = 0; at < words.length; ) {
    const lead = lines.length === 0 ? '' : indent;
    const from = lines.length === 0 ? 0 : (words[at]?.from ?? 0);
    let end = words[at]?.end ?? text.length;
    at += 1;
    for (let next = words[at]; next !== undefined; next = words[at]) {
      if (widthOf(lead + text.slice(from, next.end)) > columns) break;
      end = next.end;
      at += 1;
    }
    lines.push(lead === '' ? slice(spans, from, end) : [lead, ...slice(spans, from, end)]);
  }
  return lines;
}

/** Columns below which further lines are not indented. */
const NARROWEST = 24;

/** A command behind a colon, up to a pause or two spaces. */
const COMMAND = /(?<=: )(?:sudo )?orch(?: [^\s;,]+)+/g;

interface Word {
  readonly from: number;
  readonly end: number;
}

function wordsOf(text: string, columns: number, first: number): readonly Word[] {
  const commands = [...text.matchAll(COMMAND)].filter(([command]) => widthOf(command) <= columns);
  const isInCommand = (at: number) => commands.some(({ 0: { length }, index }) => index < at && at < index + length);
  const words: Word[] = [];
  for (const { 0: word, index } of text.matchAll(/\S+/g)) {
    const before = words.at(-1);
    const end = index + word.length;
    const joins = before !== undefined && (before.end <= first || isInCommand(index));
    if (joins) words[words.length - 1] = { from: before.from, end };
    else words.push({ from: index, end });
  }
  return words;
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
