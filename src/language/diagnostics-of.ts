/** The mistakes in a text as diagnostics, in the order of their places. */
import type { Diagnostic } from './diagnostic.js';
import type { Mistake } from './mistake.js';
import type { TextLines } from './text-lines.js';

/** A file with more mistakes is no module with mistakes. */
const MAX_DIAGNOSTICS = 1000;

export function diagnosticsOf(mistakes: readonly Mistake[], lines: TextLines): readonly Diagnostic[] {
  const sorted = [...mistakes].sort((a, b) => a.start - b.start || order(a) - order(b));
  const shown = sorted.slice(0, MAX_DIAGNOSTICS).map((mistake) => diagnosticOf(mistake, lines));
  const next = sorted[MAX_DIAGNOSTICS];
  if (next === undefined) return shown;
  const message = `${sorted.length - MAX_DIAGNOSTICS} more mistakes follow`;
  return [...shown, diagnosticOf({ ...next, severity: 'error', code: 'too_many_mistakes', message, path: '' }, lines)];
}

const order = ({ severity }: Mistake): number => (severity === 'error' ? 0 : 1);

function diagnosticOf({ severity, code, message, path, start, end }: Mistake, lines: TextLines): Diagnostic {
  const { line, column } = lines.positionAt(start);
  const until = end > start ? lines.positionAt(end) : null;
  const marked = until !== null && until.line === line ? { endColumn: until.column } : {};
  return { severity, code, message, path, line, column, ...marked };
}
