/** The YAML library's syntax errors in plain words. */
import { type Document, isScalar, visit, type YAMLParseError } from 'yaml';
import { findMisindented } from './indentation.js';
import type { MistakeList } from './mistake.js';
import type { TextLines } from './text-lines.js';

interface SyntaxContext {
  readonly text: string;
  readonly lines: TextLines;
  readonly mistakes: MistakeList;
}

/** Errors that a line of the wrong indentation causes. */
const INDENTED: ReadonlySet<string> = new Set([
  'BLOCK_AS_IMPLICIT_KEY',
  'BAD_INDENT',
  'MULTILINE_IMPLICIT_KEY',
  'MISSING_CHAR',
  'UNEXPECTED_TOKEN',
  'IMPOSSIBLE',
]);

/** Reports the first error of each line (the others of a line follow from it); true when there is none. */
export function checkSyntax(document: Document, { text, lines, mistakes }: SyntaxContext): boolean {
  const seen = new Set<number>();
  const errors = [...document.errors].sort((a, b) => a.pos[0] - b.pos[0]);
  for (const error of errors) {
    const place = placeOf(error, document);
    const { line } = lines.positionAt(place.start);
    if (seen.has(line)) continue;
    seen.add(line);
    const misindented = INDENTED.has(error.code) ? findMisindented(text, line) : null;
    if (misindented !== null) {
      // What follows is read in the wrong place, so that further errors say nothing.
      mistakes.error('yaml_syntax', misindented.message, '', misindented);
      return false;
    }
    mistakes.error(error.code === 'TAB_AS_INDENT' ? 'yaml_tab' : 'yaml_syntax', messageOf(error), '', place);
  }
  return errors.length === 0;
}

const isUnclosedQuote = (error: YAMLParseError): boolean =>
  error.code === 'MISSING_CHAR' && /closing ["']quote/.test(error.message);

/** Where to look: a quote that is never closed is worth more than the place where that becomes clear. */
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

function messageOf(error: YAMLParseError): string {
  const { code, message } = error;
  switch (code) {
    case 'TAB_AS_INDENT':
      return 'YAML is indented with spaces; replace this tab';
    case 'BLOCK_AS_IMPLICIT_KEY':
      return 'a second ": " in one value; put the value in quotes, or begin the next key on a line of its own with the same indentation as its siblings';
    case 'MULTILINE_IMPLICIT_KEY':
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
    case 'NON_STRING_KEY':
      return 'a key must be plain text';
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

/** `Unexpected scalar at node end` and its like name tokens of the library. */
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

const lower = (message: string): string => message.charAt(0).toLowerCase() + message.slice(1);
