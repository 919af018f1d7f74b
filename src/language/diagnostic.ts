/** Mistakes in a text, and the diagnostics that show them with line, column and a marker. */

import { Fault } from '../kernel/fault.js';
import { printable } from './printable.js';

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  readonly code: DiagnosticCode;
  readonly message: string;
  /** JSON pointer to the value, or to the unknown or missing member; empty for the whole module. */
  readonly path: string;
  /** Line and columns start at 1; columns count UTF-16 code units. */
  readonly line: number;
  readonly column: number;
  /** Column after the marked part, when that ends on the same line. */
  readonly endColumn?: number;
}

interface DiagnosticSource {
  /** Name of the file for messages. */
  readonly file: string;
  readonly source: string;
}

/** Maximum characters of a source line shown around a mistake. */
const EXCERPT = 120;

const WIDE =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\uff01-\uff60]$/u;
const NARROW = /^[\p{Mn}\p{Me}\u200b-\u200d]$/u;

/**
 * Renders `file:line:column: error: message`, the source line and a marker below the mistake. Replaces control characters
 * by visible signs. Tabs stay tabs in both lines, so that the marker fits every tab width.
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

/** Returns a line without its line end and without a leading byte order mark. */
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

/** Moves an offset so that it does not split a surrogate pair. */
function boundary(text: string, offset: number): number {
  const code = text.charCodeAt(offset);
  return code >= 0xdc00 && code <= 0xdfff ? offset - 1 : offset;
}

/** Returns blanks of the same width as a text. */
function blanks(text: string): string {
  let result = '';
  for (const character of text) result += character === '\t' ? '\t' : ' '.repeat(cells(character));
  return result;
}

const widthOf = (text: string): number => [...text].reduce((sum, character) => sum + cells(character), 0);

const cells = (character: string): number => (NARROW.test(character) ? 0 : WIDE.test(character) ? 2 : 1);

/** Every code of a diagnostic: stable names for editors, scripts and tests. */
export const DIAGNOSTIC_CODES = [
  // the text
  'too_large',
  'too_many_tokens',
  'too_deep',
  'control_character',
  'byte_order_mark',
  'yaml_anchor',
  'yaml_alias',
  'yaml_tag',
  'yaml_directive',
  'yaml_merge_key',
  'yaml_documents',
  'yaml_tab',
  'yaml_syntax',
  'duplicate_key',
  'reserved_key',
  'empty_module',
  // the shape
  'unknown_key',
  'missing_key',
  'wrong_type',
  'unquoted',
  'invalid_value',
  'misplaced_key',
  'kind_missing',
  'kind_ambiguous',
  'unknown_kind',
  'resource_missing',
  'resource_ambiguous',
  'check_missing',
  'check_ambiguous',
  // the meaning
  'duplicate_id',
  'unknown_id',
  'trigger_ambiguous',
  'dependency_cycle',
  'duplicate_template',
  'unknown_template',
  'template_invalid',
  'file_unusable',
  'duplicate_resource',
  'identity_missing',
  'variant_tie',
  'too_complex',
  'expression_syntax',
  'condition_invalid',
  'loop_invalid',
  'input_invalid',
  'secret_in_identity',
  'duplicate_name',
  'invalid_selector',
  'unknown_module',
  // warnings
  'supports_empty',
  'unknown_distro',
  'clause_unmatchable',
  'variant_gap',
  'declared_before_parent',
  'shebang_ignored',
  'unused_template',
  'path_rewritten',
  'expression_ignored',
  // the report itself
  'too_many_mistakes',
] as const;

export type DiagnosticCode = (typeof DIAGNOSTIC_CODES)[number];

/** A range of the text; `end` equals `start` when only the start is marked. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

interface Mistake extends Place {
  readonly severity: 'error' | 'warning';
  readonly code: DiagnosticCode;
  readonly message: string;
  /** JSON pointer to the value, or to the unknown or missing member. */
  readonly path: string;
}

/** Collects mistakes in any order. */
export class MistakeList {
  readonly #found: Mistake[] = [];

  error(code: DiagnosticCode, message: string, path: string, place: Place): void {
    this.#found.push({ severity: 'error', code, message, path, start: place.start, end: place.end });
  }

  warning(code: DiagnosticCode, message: string, path: string, place: Place): void {
    this.#found.push({ severity: 'warning', code, message, path, start: place.start, end: place.end });
  }

  addAll(mistakes: readonly Mistake[]): void {
    for (const mistake of mistakes) this.#found.push(mistake);
  }

  get found(): readonly Mistake[] {
    return this.#found;
  }

  get failed(): boolean {
    return this.#found.some((mistake) => mistake.severity === 'error');
  }
}

/** Maximum number of listed mistakes; more are only counted. */
const MAX_DIAGNOSTICS = 1000;

/** Converts mistakes into diagnostics in the order of their places. */
export function diagnosticsOf(mistakes: readonly Mistake[], lines: TextLines): readonly Diagnostic[] {
  const sorted = withoutRepeats(mistakes).sort((a, b) => a.start - b.start || order(a) - order(b));
  const shown = sorted.slice(0, MAX_DIAGNOSTICS).map((mistake) => diagnosticOf(mistake, lines));
  const next = sorted[MAX_DIAGNOSTICS];
  if (next === undefined) return shown;
  const message = `${sorted.length - MAX_DIAGNOSTICS} more mistakes follow`;
  return [...shown, diagnosticOf({ ...next, severity: 'error', code: 'too_many_mistakes', message, path: '' }, lines)];
}

/** Keeps the first of equal mistakes at one place, such as those in what the packages of a list share. */
function withoutRepeats(mistakes: readonly Mistake[]): Mistake[] {
  const first = new Map<string, Mistake>();
  for (const mistake of mistakes) {
    const { code, start, end, message } = mistake;
    const key = `${code} ${start} ${end} ${message}`;
    if (!first.has(key)) first.set(key, mistake);
  }
  return [...first.values()];
}

const order = ({ severity }: Mistake): number => (severity === 'error' ? 0 : 1);

function diagnosticOf({ severity, code, message, path, start, end }: Mistake, lines: TextLines): Diagnostic {
  const { line, column } = lines.positionAt(start);
  const until = end > start ? lines.positionAt(end) : null;
  const marked = until !== null && until.line === line ? { endColumn: until.column } : {};
  return { severity, code, message, path, line, column, ...marked };
}

/** Line and column start at 1; a column counts UTF-16 code units, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface TextLines {
  /** Returns the position of an offset. An offset outside the text counts as its start or end. */
  positionAt(offset: number): Position;
}

export function textLines(text: string): TextLines {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return {
    positionAt(offset) {
      const within = Math.max(0, Math.min(offset, text.length));
      let low = 0;
      let high = starts.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if ((starts[middle] ?? 0) <= within) low = middle;
        else high = middle - 1;
      }
      return { line: low + 1, column: within - (starts[low] ?? 0) + 1 };
    },
  };
}

/** Returns the fault `invalid_module` with every error, without warnings. `label` names the module or its file. */
export function moduleFault(label: string, diagnostics: readonly Diagnostic[]): Fault {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  const [first] = errors;
  const more = errors.length > 1 ? ` (and ${errors.length - 1} more)` : '';
  const what = first === undefined ? 'it is no module' : `line ${first.line}: ${first.message}${more}`;
  return new Fault('invalid_module', `${label}: ${what}`, {
    hint: 'check the file with "orch module validate"',
    errors: errors.map(({ path, message, line, column }) => ({ path, message, line, column })),
  });
}
