/** Tables on a terminal, written by cli-table3. Other lists are too long for it: it compares each cell with all rows above. */
import Table from 'cli-table3';
import type { Paint } from './paint.js';
import { cutCell, type FittedColumn, GAP, type WriteTable } from './render-view.js';

/** Rows that the library gets at once. */
const PORTION = 50;

/**
 * Text that the library measures as we do: Latin, Greek, Cyrillic and Armenian letters, general punctuation, arrows, kana, common Han
 * characters and Hangul syllables.
 */
const MEASURED =
  /^[\x20-\x7e\u00a0-\u02ff\u0370-\u0482\u048a-\u058f\u2010-\u2027\u2190-\u2193\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]*$/;

const NONE = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
  ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid'],
];
const CHARS = { ...Object.fromEntries(NONE.map((name) => [name, ''])), middle: ' '.repeat(GAP) };

/** Writes a table without borders. Returns null for one that the library would measure otherwise. */
export const terminalTable: WriteTable = (columns, paint) => {
  if (columns.some(({ cells }) => !cells.every(({ text }) => MEASURED.test(text)))) return null;
  const count = columns[0]?.cells.length ?? 0;
  const lines: string[] = [];
  for (let from = 0; from < count; from += PORTION) {
    const table = new Table({
      chars: CHARS,
      style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
      colWidths: columns.map(({ width }) => width),
      colAligns: columns.map(({ column }) => (column.right ? 'right' : 'left')),
    });
    for (let row = from; row < Math.min(count, from + PORTION); row += 1) table.push(rowOf(columns, row, paint));
    lines.push(...table.toString().split('\n'));
  }
  return lines.map((line) => line.trimEnd());
};

const rowOf = (columns: readonly FittedColumn[], row: number, paint: Paint): string[] =>
  columns.map(({ cells, width }) => {
    const cell = cells[row];
    return cell === undefined ? '' : paint.span(cutCell(cell, width));
  });
