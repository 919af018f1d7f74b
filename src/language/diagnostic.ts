/** A mistake in a module with its place in the file, and how it is shown to a person. */
import type { DiagnosticCode } from './diagnostic-code.js';
import { printable } from './printable.js';

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  readonly code: DiagnosticCode;
  readonly message: string;
  /** JSON pointer to the value, or to the member that is unknown or missing; empty for the module as a whole. */
  readonly path: string;
  /** Line and columns start at 1; columns count UTF-16 code units. */
  readonly line: number;
  readonly column: number;
  /** The column behind the marked part, when that lies on the same line. */
  readonly endColumn?: number;
}

export interface DiagnosticSource {
  /** The name of the file as the reader knows it. */
  readonly file: string;
  readonly source: string;
}

/** Most characters of a source line that are shown around the mistake. */
const EXCERPT = 120;

const WIDE =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\uff01-\uff60]$/u;
const NARROW = /^[\p{Mn}\p{Me}\u200b-\u200d]$/u;

/**
 * `file:line:column: error: message`, the line of the source and a marker below the mistake. Control characters of the
 * source are shown as signs; tabs stay tabs in both lines, so that the marker is right at every tab width.
 */
export function renderDiagnostic(diagnostic: Diagnostic, { file, source }: DiagnosticSource): string {
  const { severity, message, line, column } = diagnostic;
  const head = `${printable(file)}:${line}:${column}: ${severity}: ${printable(message)}`;
  const text = lineOf(source, line);
  if (text.trim() === '') return head;

  const from = column - 1 > EXCERPT ? boundary(text, column - 1 - EXCERPT / 2) : 0;
  const to = boundary(text, Math.min(text.length, from + EXCERPT));
  const lead = from > 0 ? '…' : '';
  const shown = lead + printable(text.slice(from, to)) + (to < text.length ? '…' : '');
  const marked = text.slice(column - 1, Math.min(to, (diagnostic.endColumn ?? column + 1) - 1));
  const gutter = `${line} | `;
  const blank = ' '.repeat(String(line).length);
  const padding = blanks(lead) + blanks(text.slice(from, column - 1));
  return `${head}\n${gutter}${shown}\n${blank} | ${padding}${'^'.repeat(Math.max(1, widthOf(marked)))}`;
}

/** A line without its end and without a byte order mark at the start of the text. */
function lineOf(source: string, line: number): string {
  let start = source.startsWith('\ufeff') ? 1 : 0;
  for (let at = 1; at < line; at += 1) {
    const end = source.indexOf('\n', start);
    if (end === -1) return '';
    start = end + 1;
  }
  const end = source.indexOf('\n', start);
  const text = source.slice(start, end === -1 ? undefined : end);
  return text.endsWith('\r') ? text.slice(0, -1) : text;
}

/** An offset that does not split a surrogate pair. */
function boundary(text: string, offset: number): number {
  const code = text.charCodeAt(offset);
  return code >= 0xdc00 && code <= 0xdfff ? offset - 1 : offset;
}

/** What takes as much room as a text without being seen. */
function blanks(text: string): string {
  let result = '';
  for (const character of text) result += character === '\t' ? '\t' : ' '.repeat(cells(character));
  return result;
}

const widthOf = (text: string): number => [...text].reduce((sum, character) => sum + cells(character), 0);

const cells = (character: string): number => (NARROW.test(character) ? 0 : WIDE.test(character) ? 2 : 1);
