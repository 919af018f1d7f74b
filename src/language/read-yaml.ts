/** Reads YAML text into located data and explains syntax errors in plain words. */
import { Composer, type Document, isScalar, visit, type YAMLParseError } from 'yaml';
import { isLongerThan } from '../resources/file-content.js';
import type { MistakeList, Place, TextLines } from './diagnostic.js';
import { locate } from './locate.js';
import type { Located } from './located.js';
import { quoted } from './printable.js';
import { blankAdvice } from './strange-blank.js';
import { checkCharacters, guardYaml, YAML_LIMITS } from './yaml-guard.js';

/** Names of a file's content, for messages. */
interface FileNoun {
  /** Noun such as `module`. */
  readonly noun: string;
  /** First key of the file. */
  readonly begin: string;
}

const MODULE: FileNoun = { noun: 'module', begin: 'name' };

/** Returns the data of a text without a byte order mark. Returns null and reports errors for unacceptable YAML. */
export function readYaml(
  text: string,
  lines: TextLines,
  mistakes: MistakeList,
  { noun, begin }: FileNoun = MODULE,
): Located | null {
  if (isLongerThan(text, YAML_LIMITS.bytes)) {
    mistakes.error('too_large', `the ${noun} is larger than ${YAML_LIMITS.bytes} bytes`, '', { start: 0, end: 0 });
    return null;
  }
  if (!checkCharacters(text, mistakes)) return null;
  const tokens = guardYaml(text, mistakes, noun);
  if (tokens === null) return null;
  const document = compose(tokens, text.length);
  if (!checkSyntax(document, { text, lines, mistakes })) return null;
  if (isEmpty(document)) {
    mistakes.error('empty_module', `the file holds no ${noun}; begin with "${begin}:"`, '', { start: 0, end: 0 });
    return null;
  }
  const root = locate(document.contents, { text, lines, mistakes });
  // Without the values of its aliases, other mistakes would be reported wrongly.
  return mistakes.found.some(({ code, severity }) => code === 'yaml_alias' && severity === 'error') ? null : root;
}

function compose(tokens: Parameters<Composer['compose']>[0], length: number): Document {
  // The library's check for duplicate keys is quadratic; `locate` does it instead.
  const composer = new Composer({ version: '1.2', schema: 'core', uniqueKeys: false, stringKeys: true, merge: false });
  const [document] = composer.compose(tokens, true, length);
  if (document === undefined) throw new Error('the composer gave no document');
  return document;
}

const isEmpty = ({ contents }: Document): boolean =>
  contents === null || (isScalar(contents) && contents.value === null && !contents.source);

interface SyntaxContext {
  readonly text: string;
  readonly lines: TextLines;
  readonly mistakes: MistakeList;
}

/** Errors that wrong indentation causes. */
const INDENTED: ReadonlySet<string> = new Set([
  'BLOCK_AS_IMPLICIT_KEY',
  'BAD_INDENT',
  'MULTILINE_IMPLICIT_KEY',
  'MISSING_CHAR',
  'UNEXPECTED_TOKEN',
  'IMPOSSIBLE',
]);

/** Reports the first error of each line, which causes the others, and returns true without errors. */
function checkSyntax(document: Document, { text, lines, mistakes }: SyntaxContext): boolean {
  const seen = new Set<number>();
  const errors = [...document.errors].sort((a, b) => a.pos[0] - b.pos[0]);
  for (const error of errors) {
    const place = placeOf(error, document);
    const { line } = lines.positionAt(place.start);
    if (seen.has(line)) continue;
    seen.add(line);
    const blank = strangeBlank(text, place.start);
    if (blank !== null) {
      mistakes.error('yaml_syntax', blank.message, '', blank);
      return false;
    }
    const misindented = INDENTED.has(error.code) ? findMisindented(text, line) : null;
    if (misindented !== null) {
      // The text after it is parsed at the wrong level, so other errors mean nothing.
      mistakes.error('yaml_syntax', misindented.message, '', misindented);
      return false;
    }
    mistakes.error(error.code === 'TAB_AS_INDENT' ? 'yaml_tab' : 'yaml_syntax', messageOf(error, text), '', place);
  }
  return errors.length === 0;
}

const isUnclosedQuote = (error: YAMLParseError): boolean =>
  error.code === 'MISSING_CHAR' && /closing ["']quote/.test(error.message);

/** Returns the place of an error; for an unclosed quote, the place of the quote. */
function placeOf(error: YAMLParseError, document: Document): { start: number; end: number } {
  const [start, end] = error.pos;
  if (!isUnclosedQuote(error)) return { start, end: error.code === 'TAB_AS_INDENT' ? end : start };
  let opening = start;
  visit(document, {
    Scalar(_, node) {
      if (isScalar(node) && node.range && node.range[0] < start && node.range[1] >= start) opening = node.range[0];
    },
  });
  return { start: opening, end: opening + 1 };
}

function messageOf(error: YAMLParseError, text: string): string {
  const { code, message } = error;
  switch (code) {
    case 'TAB_AS_INDENT':
      return 'YAML is indented with spaces; replace this tab';
    case 'BLOCK_AS_IMPLICIT_KEY':
      if (/^.*\$\{\{/.test(text.slice(error.pos[0]))) {
        return 'YAML reads the ": " in this expression as a key; put the whole value in single quotes, or in double quotes with the texts inside in single ones';
      }
      return 'a second ": " in one value; put the value in quotes, or begin the next key on a line of its own with the same indentation as its siblings';
    case 'MULTILINE_IMPLICIT_KEY':
      if (/^[\w.-]+:[^\s:/]/.test(text.slice(error.pos[0]))) return 'behind a key stands ": ", with a space';
      return 'this does not fit its surroundings; check the indentation, and that every key ends with ":"';
    case 'BAD_SCALAR_START':
      return `${lower(message)}; put the value in quotes`;
    case 'BAD_INDENT':
      return message.startsWith('Flow ')
        ? `the ${message.includes('sequence') ? 'list in brackets' : 'mapping in braces'} is not closed, or goes on with too little indentation`
        : lower(message).replace('mapping items', 'keys of one mapping');
    case 'BAD_DQ_ESCAPE':
      return `${lower(message)}; in double quotes a backslash is written twice, in single quotes as it is`;
    case 'KEY_OVER_1024_CHARS':
      return 'a key is longer than 1024 characters; put a value that holds ":" in quotes';
    case 'NON_STRING_KEY': {
      const [start, end] = error.pos;
      return text.slice(Math.max(0, start - 1), end).includes('{{')
        ? `braces begin a mapping here; put the value in quotes. orch writes its expressions as "\${{ … }}"`
        : 'a key must be plain text';
    }
    case 'MISSING_CHAR':
      if (isUnclosedQuote(error)) return 'this quote is never closed';
      if (message.startsWith('Implicit map keys')) return 'a ":" and a value are missing behind this key';
      if (message.startsWith('Sequence item without')) return 'the indentation does not fit the list above';
      if (message.startsWith('Comments must')) return 'a comment needs a space before its "#"';
      return lower(message);
    case 'BLOCK_IN_FLOW':
      return 'inside brackets and braces a "," belongs between entries, and nothing is nested by indentation';
    case 'UNEXPECTED_TOKEN':
      return unexpected(message);
    default:
      return lower(message);
  }
}

/** Rewords messages that name tokens of the library, such as `Unexpected scalar at node end`. */
function unexpected(message: string): string {
  if (message.startsWith('Unexpected , in')) return 'unexpected comma; nothing stands before it';
  if (message.includes('flow-map-')) return 'unexpected brace; put a value that holds "{" or "}" in quotes';
  if (message.includes('flow-seq-')) return 'unexpected bracket; put a value that holds "[" or "]" in quotes';
  if (message.endsWith('scalar at node end')) return 'unexpected text behind a value that is complete';
  if (message.startsWith('Not a YAML token')) return 'a block of text begins on the line below its "|" or ">"';
  if (message.startsWith('Block scalar header')) return 'only "+", "-" and a digit may follow "|" or ">" on its line';
  if (message.includes('block-seq-ind') || message.includes('seq-item-ind')) {
    return 'a list item is not expected here; check the indentation';
  }
  if (message.includes('map-value-ind')) return 'a ":" is not expected here; check the indentation';
  if (message.includes('token')) return 'this does not fit its surroundings; check the indentation';
  return lower(message);
}

/** Returns the first blank in the indentation of a line that is no space, and what to do; null without one. */
function strangeBlank(text: string, offset: number): IndentationMistake | null {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  for (let at = start; at < text.length; at += 1) {
    const letter = text.charAt(at);
    const message = blankAdvice(letter);
    if (message !== null) return { start: at, end: at + 1, message };
    if (letter !== ' ' && letter !== '-') return null;
  }
  return null;
}

const lower = (message: string): string => message.charAt(0).toLowerCase() + message.slice(1);

/** A line with slightly more or less indentation than its siblings, the cause of most YAML syntax errors. */
interface IndentationMistake extends Place {
  readonly message: string;
}

/** A line that begins a list item or a key. */
interface Line {
  /** Line number, from 1. */
  readonly number: number;
  /** Offset of the first character. */
  readonly start: number;
  /** Number of leading spaces. */
  readonly indent: number;
  readonly isItem: boolean;
  /** First key of the line, after the dash of an item; null without one. */
  readonly key: string | null;
  /** Column of that key, from 0. */
  readonly keyIndent: number;
  readonly hasValue: boolean;
}

/** Maximum number of lines searched above a mistake. */
const LOOK_BACK = 2000;
/** Maximum difference in spaces; a line that is further off belongs elsewhere. */
const MOST = 3;

/**
 * Searches around a syntax error for a line that is off by a few spaces. Returns null without one.
 * @param number line with the error, from 1
 */
function findMisindented(text: string, number: number): IndentationMistake | null {
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

/** Finds a key slightly deeper than a `key: value` above it, which YAML reads as part of that value. */
function deeperThanSibling(here: Line, next: Line | null): IndentationMistake | null {
  if (next === null || here.key === null || next.key === null || !here.hasValue) return null;
  const by = next.indent - here.keyIndent;
  return by > 0 && by <= MOST && !next.isItem ? mistakeOf(next, here) : null;
}

function offFromAbove(here: Line, read: (at: number) => Line | null): IndentationMistake | null {
  let best: Line | null = null;
  // Only lines with less indentation than all lines between them and the mistake are its parents or siblings.
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

/** Returns the column of a line's item or key; null without one. */
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
