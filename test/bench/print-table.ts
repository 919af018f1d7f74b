/** Rows as a table for people. */
import type { Row } from './row.js';

const shown = (value: number): string => {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits);
};

const verdict = ({ isMet }: Row): string => (isMet === null ? '-' : isMet ? 'ok' : 'NOT MET');

/** @param before rows of an earlier run, by what they measured */
export function printTable(rows: readonly Row[], before: ReadonlyMap<string, Row> | null): string {
  const head = ['', 'ours', 'beside it', 'ratio', 'goal', '', ...(before ? ['before'] : [])];
  const lines = rows.map((row) => {
    const beside = Object.entries(row.beside);
    const earlier = before?.get(row.what);
    return [
      row.what,
      `${shown(row.ours)} ${row.unit}`.trim(),
      beside.map(([name, value]) => `${name} ${shown(value)}`).join(', '),
      beside.map(([, value]) => (value === 0 ? '-' : shown(row.ours / value))).join(', '),
      row.goal ?? '',
      verdict(row),
      ...(before ? [earlier === undefined ? '-' : shown(earlier.ours)] : []),
    ];
  });
  const table = [head, ...lines];
  const widths = head.map((_, column) => Math.max(...table.map((line) => (line[column] ?? '').length)));
  return table
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
