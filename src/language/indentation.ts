/** Lines that are indented a little more or less than their siblings: what most syntax errors of YAML come from. */
import type { Place } from './mistake.js';
import { quoted } from './printable.js';

export interface IndentationMistake extends Place {
  readonly message: string;
}

/** A line that begins a list item or a key. */
interface Line {
  /** From 1. */
  readonly number: number;
  /** Offset of its first character. */
  readonly start: number;
  /** Spaces before its first sign. */
  readonly indent: number;
  readonly isItem: boolean;
  /** The key that it begins with, behind the dash of an item; null when there is none. */
  readonly key: string | null;
  /** The column of that key, from 0. */
  readonly keyIndent: number;
  readonly hasValue: boolean;
}

/** Lines that are looked at above a mistake. */
const LOOK_BACK = 2000;
/** A line that is off by more is meant to be somewhere else. */
const MOST = 3;

/**
 * Looks around a syntax error for a line that is off by a few spaces; null when there is none.
 * @param number of the line with the error, from 1
 */
export function findMisindented(text: string, number: number): IndentationMistake | null {
  const lines = text.split('\n', number + 1);
  const starts: number[] = [];
  let offset = 0;
  for (const line of lines) {
    starts.push(offset);
    offset += line.length + 1;
  }
  const read = (at: number): Line | null => readLine(lines[at - 1], at, starts[at - 1] ?? 0);
  const here = read(number);
  if (here === null) return null;
  const next = read(number + 1);
  return deeperThanSibling(here, next) ?? offFromAbove(here, read);
}

function readLine(text: string | undefined, number: number, start: number): Line | null {
  if (text === undefined || /^\s*(?:#|$)/.test(text)) return null;
  const [, spaces = '', dash = '', key] = /^( *)((?:- +)?)(?:("[^"]*"|'[^']*'|[\w./-]+):(?:\s|$))?/.exec(text) ?? [];
  const isItem = dash !== '' || /^ *-\s*$/.test(text);
  if (!isItem && key === undefined) return null;
  const keyIndent = spaces.length + dash.length;
  const rest = key === undefined ? '' : text.slice(keyIndent + key.length + 1).trim();
  const hasValue = rest !== '' && !rest.startsWith('#');
  return { number, start, indent: spaces.length, isItem, key: key ?? null, keyIndent, hasValue };
}

/** `key: value` and below it, a little deeper, another key: it is read as a part of the value. */
function deeperThanSibling(here: Line, next: Line | null): IndentationMistake | null {
  if (next === null || here.key === null || next.key === null || !here.hasValue) return null;
  const by = next.indent - here.keyIndent;
  return by > 0 && by <= MOST && !next.isItem ? mistakeOf(next, here) : null;
}

function offFromAbove(here: Line, read: (at: number) => Line | null): IndentationMistake | null {
  let best: Line | null = null;
  // Only lines that are indented less than all between them and the mistake enclose it or are its siblings.
  let bound = Number.POSITIVE_INFINITY;
  for (let at = here.number - 1; at > 0 && at > here.number - LOOK_BACK && bound > 0; at -= 1) {
    const line = read(at);
    if (line === null || line.indent >= bound) continue;
    bound = line.indent;
    const indent = indentOf(line, here.isItem);
    if (indent === null) continue;
    if (indent === here.indent) return null;
    const off = Math.abs(indent - here.indent);
    if (off <= MOST && (best === null || off < Math.abs((indentOf(best, here.isItem) ?? 0) - here.indent))) best = line;
  }
  return best === null ? null : mistakeOf(here, best);
}

/** The column at which a line has an item or a key; null when it has none. */
const indentOf = (line: Line, isItem: boolean): number | null => {
  if (isItem) return line.isItem ? line.indent : null;
  return line.key === null ? null : line.keyIndent;
};

function mistakeOf(wrong: Line, sibling: Line): IndentationMistake {
  const start = wrong.start + wrong.indent;
  const place = { start, end: start + (wrong.key === null ? 1 : wrong.keyIndent - wrong.indent + wrong.key.length) };
  const by = spaces(wrong.indent);
  if (wrong.isItem) {
    const message = `this list item is indented by ${by}, and the one on line ${sibling.number} by ${sibling.indent}; indent the items of a list alike`;
    return { ...place, message };
  }
  const message = `${quoted(wrong.key ?? '')} is indented by ${by}, and ${quoted(sibling.key ?? '')} on line ${sibling.number} by ${sibling.keyIndent}; indent the keys of one mapping alike`;
  return { ...place, message };
}

const spaces = (count: number): string => (count === 1 ? '1 space' : `${count} spaces`);
