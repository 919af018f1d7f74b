/** Rows as a table for people. */
import { OURS, type Row } from './row.js';

const shown = (value: number): string => {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toFixed(digits);
};

const verdict = ({ isMet }: Row): string => (isMet === null ? '-' : isMet ? 'ok' : 'NOT MET');

/** A number, and the least and the most of the runs behind it. */
function withSpread(value: number, name: string, { spread }: Row): string {
  const range = spread?.[name];
  return range === undefined ? shown(value) : `${shown(value)} (${shown(range[0])}-${shown(range[1])})`;
}

const ratiosOf = ({ ours, beside, ratios }: Row): string =>
  Object.entries(beside)
    .map(([name, value]) => ratios?.[name] ?? ours / value)
    .map((ratio) => (Number.isFinite(ratio) ? shown(ratio) : '-'))
    .join(', ');

/** @param before rows of an earlier run, by what they measured */
export function printTable(rows: readonly Row[], before: ReadonlyMap<string, Row> | null): string {
  const head = [
    '',
    'ours',
    'beside it',
    'ratio',
    'goal',
    '',
    ...(before ? ['before', 'its ratio', 'now / before'] : []),
  ];
  const lines = rows.map((row) => [
    row.what,
    `${withSpread(row.ours, OURS, row)} ${row.unit}`.trim(),
    Object.entries(row.beside)
      .map(([name, value]) => `${name} ${withSpread(value, name, row)}`)
      .join(', '),
    ratiosOf(row),
    row.goal ?? '',
    verdict(row),
    ...(before ? earlierOf(row, before.get(row.what)) : []),
  ]);
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

function earlierOf(row: Row, earlier: Row | undefined): readonly string[] {
  if (earlier === undefined) return ['-', '', ''];
  return [`${shown(earlier.ours)} ${earlier.unit}`.trim(), ratiosOf(earlier), shown(row.ours / earlier.ours)];
}
