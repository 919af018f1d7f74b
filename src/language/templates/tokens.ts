/** Splits the text of a template at its tags. A line with tags and nothing else leaves no line. */
import type { Steps } from '../../kernel/steps.js';
import { CLOSE, closedBy, OPEN } from '../parse-expression.js';
import type { TemplateProblem } from './template.js';

/** A piece of a template; `offset` is that of its opening in the text. */
export type Token =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'print'; readonly offset: number; readonly source: string }
  | {
      readonly type: 'tag';
      readonly offset: number;
      readonly name: string;
      readonly rest: string;
      /** True on a line that holds tags and blanks only. */
      readonly isLine: boolean;
    };

interface Tokens {
  readonly tokens: readonly Token[];
  readonly problems: readonly TemplateProblem[];
}

/** What opens a tag or an expression; also what does so in Jinja and in texts without an engine, which is a mistake here. */
const OPENING = /\$?\{\{|\{%|(?<!\$)\{#(?=[^}]{0,1000}#\})/g;

/** Returns the offsets of all openings in a text, whether it is written in YAML or read from it. */
export const openingsIn = (text: string): readonly number[] => [...text.matchAll(OPENING)].map(({ index }) => index);

/** Maximum tags and expressions of a template. */
const MAX_TAGS = 5_000;

/** A tag or an expression with its place in the text. */
interface Opened {
  readonly type: 'print' | 'tag';
  readonly start: number;
  readonly end: number;
  /** Text inside without the signs that trim. */
  readonly source: string;
  readonly trimsBefore: boolean;
  readonly trimsAfter: boolean;
}

/** Tags and expressions that are read in one step. */
export const TAGS_AT_ONCE = 100;

/** Returns the tokens of a template in order, with blanks removed as its tags say. Steps over some tags at a time. */
export function* tokensOf(text: string): Steps<Tokens> {
  const { opened, problems } = yield* openedIn(text);
  const lines = yield* linesOfTags(text, opened);
  const tokens: Token[] = [];
  const add = (literal: string) => {
    if (literal !== '') tokens.push({ type: 'text', text: literal });
  };
  let from = 0;
  let isTrimmed = false;
  for (const [at, one] of opened.entries()) {
    if (at % TAGS_AT_ONCE === TAGS_AT_ONCE - 1) yield;
    const isLine = lines.has(one);
    let literal = text.slice(from, one.start);
    if (isTrimmed) literal = literal.trimStart();
    if (one.trimsBefore) literal = literal.trimEnd();
    else if (isLine) literal = literal.replace(/[ \t]{0,1000}$/, '');
    add(literal);
    tokens.push(tokenOf(one, isLine));
    from = one.end;
    if (isLine) from += BLANK_END.exec(text.slice(from, from + MAX_BLANKS))?.[0].length ?? 0;
    isTrimmed = one.trimsAfter;
  }
  const rest = text.slice(from);
  add(isTrimmed ? rest.trimStart() : rest);
  return { tokens, problems };
}

function tokenOf({ type, start: offset, source }: Opened, isLine: boolean): Token {
  if (type === 'print') return { type, offset, source };
  const [, name = '', rest = ''] = /^(\w*)\s*(.*)$/s.exec(source) ?? [];
  return { type, offset, name, rest, isLine };
}

/** Maximum blanks beside a tag that are looked at, because a hostile text has many tags. */
const MAX_BLANKS = 1_000;
const BLANK_START = /(?:^|\n)[ \t]*$/;
const BLANK_END = /^[ \t]*(?:\r?\n|$)/;

/** Returns the tags on lines that hold tags and blanks only; what is rendered beside other tags is part of the line. */
function* linesOfTags(text: string, opened: readonly Opened[]): Steps<ReadonlySet<Opened>> {
  const found = new Set<Opened>();
  for (let first = 0; first < opened.length; ) {
    let last = first;
    while (isJoined(text, opened[last], opened[last + 1])) {
      last += 1;
      if (last % TAGS_AT_ONCE === 0) yield;
    }
    const run = opened.slice(first, last + 1);
    const [start, end] = [opened[first]?.start ?? 0, opened[last]?.end ?? 0];
    const before = text.slice(Math.max(0, start - MAX_BLANKS), start);
    const isStart = BLANK_START.test(before) && (start <= MAX_BLANKS || before.includes('\n'));
    const isAlone = isStart && BLANK_END.test(text.slice(end, end + MAX_BLANKS));
    if (
      isAlone &&
      run.every(({ type, source }) => type === 'tag' && (run.length === 1 || !source.startsWith('render')))
    ) {
      for (const one of run) found.add(one);
    }
    if (Math.floor(first / TAGS_AT_ONCE) < Math.floor((last + 1) / TAGS_AT_ONCE)) yield;
    first = last + 1;
  }
  return found;
}

/** Returns true for two tags on one line with nothing but blanks between them. */
function isJoined(text: string, left: Opened | undefined, right: Opened | undefined): boolean {
  if (left?.type !== 'tag' || right?.type !== 'tag' || right.start - left.end > MAX_BLANKS) return false;
  return /^[ \t]*$/.test(text.slice(left.end, right.start));
}

/** Returns the expressions and tags of a text in order. */
function* openedIn(
  text: string,
): Steps<{ readonly opened: readonly Opened[]; readonly problems: readonly TemplateProblem[] }> {
  const opened: Opened[] = [];
  const problems: TemplateProblem[] = [];
  const opening = new RegExp(OPENING);
  for (let found = opening.exec(text); found !== null; found = opening.exec(text)) {
    const { index: start, 0: open } = found;
    if (opened.length % TAGS_AT_ONCE === TAGS_AT_ONCE - 1) yield;
    if (opened.length === MAX_TAGS) {
      problems.push({ offset: start, message: `a template has at most ${MAX_TAGS} tags and expressions` });
      break;
    }
    const mend = MENDS[open];
    const close = open === '{%' ? '%}' : open === '{#' ? '#}' : CLOSE;
    const inside = start + open.length;
    const end = closedBy(text, close, start, inside);
    if (mend !== undefined) problems.push({ offset: start, message: mend });
    else if (end === -1) problems.push({ offset: start, message: unclosed(open, close) });
    if (end === -1) break;
    opening.lastIndex = end + close.length;
    if (mend !== undefined) continue;
    const one = openedAt(text, { start, inside, end, close });
    opened.push({ ...one, type: open === '{%' ? 'tag' : 'print' });
    const verbatim = open === '{%' ? (/^(raw|comment)\b/.exec(one.source)?.[1] ?? null) : null;
    if (verbatim === null) continue;
    const tail = endOf(text, verbatim, one.end);
    if (tail === null) {
      problems.push({
        offset: start,
        message: `this {% ${verbatim} %} is never closed; end it with {% end${verbatim} %}`,
      });
      break;
    }
    // A comment is one tag, and the text of `raw` stands between two.
    if (verbatim === 'raw') opened.push({ ...tail, type: 'tag' });
    else opened[opened.length - 1] = { ...one, type: 'tag', end: tail.end, trimsAfter: tail.trimsAfter };
    opening.lastIndex = tail.end;
  }
  return { opened, problems };
}

interface Bounds {
  readonly start: number;
  /** Offset behind the opening. */
  readonly inside: number;
  /** Offset of the closing. */
  readonly end: number;
  readonly close: string;
}

function openedAt(text: string, { start, inside, end, close }: Bounds): Omit<Opened, 'type'> {
  const written = text.slice(inside, end);
  const trimsBefore = written.startsWith('-');
  const trimsAfter = written.length > 1 && written.endsWith('-');
  const source = written.slice(trimsBefore ? 1 : 0, trimsAfter ? -1 : undefined).trim();
  return { start, end: end + close.length, source, trimsBefore, trimsAfter };
}

/** Returns the tag that ends a text which is not read, or null. */
function endOf(text: string, name: string, from: number): Omit<Opened, 'type'> | null {
  const pattern = new RegExp(`\\{%-?\\s*end${name}\\s*-?%\\}`, 'g');
  pattern.lastIndex = from;
  const found = pattern.exec(text);
  if (found === null) return null;
  const { index: start, 0: written } = found;
  return openedAt(text, { start, inside: start + 2, end: start + written.length - 2, close: '%}' });
}

const unclosed = (open: string, close: string): string =>
  `this ${open} is never closed; end it with ${close}, or write {% raw %}${open}{% endraw %} for the text itself`;

/** Openings that are mistakes in a template. */
const MENDS: Readonly<Record<string, string>> = {
  [OPEN]: `a template with an engine writes {{ … }} without the dollar sign; for the text itself, write {% raw %}${OPEN} … }}{% endraw %}`,
  '{#': 'a comment is written {% comment %} … {% endcomment %}; for the text itself, write {% raw %}{#{% endraw %}',
};
