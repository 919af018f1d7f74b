/** Tables that fit the terminal. */
import { type Column, styled, type TableView } from '../view.js';
import { type Paint, plainText } from './paint.js';
import { sanitize } from './sanitize.js';
import { cutToWidth, widthOf } from './width.js';

export interface TableOptions {
  readonly paint: Paint;
  readonly wide: boolean;
  /** Columns of the terminal; null does not cut. */
  readonly columns: number | null;
}

const GAP = 2;
/** No column is cut below that. */
const NARROWEST = 6;
const NO_LINES = Object.fromEntries(
  [
    ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
    ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
  ].map((name) => [name, '']),
);

/** The lines of a table; of an empty one, its sentence. */
export async function renderTable(view: TableView, options: TableOptions): Promise<readonly string[]> {
  const { paint, wide, columns } = options;
  if (view.rows.length === 0) return [paint.span(view.empty)];
  const shown = view.columns.map((column, index) => ({ column, index })).filter(({ column }) => wide || !column.wide);
  const cells = view.rows.map((row) => shown.map(({ index }) => row[index] ?? ''));
  const natural = shown.map(({ column }, index) =>
    Math.max(widthOf(column.title), ...cells.map((row) => widthOf(sanitize(plainText(row[index] ?? ''))))),
  );
  const widths =
    columns === null
      ? natural
      : narrow(
          natural,
          shown.map(({ column }) => column),
          columns,
        );
  const { default: Table } = await import('cli-table3');
  const table = new Table({
    chars: NO_LINES,
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': GAP },
    colWidths: widths.map((width) => width + GAP),
    colAligns: shown.map(({ column }) => (column.right ? 'right' : 'left')),
  });
  if (view.titles !== false) table.push(shown.map(({ column }) => paint.span(styled('dim', column.title))));
  for (const row of cells) {
    table.push(row.map((span, index) => paint.span(cut(span, widths[index] ?? 0))));
  }
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd());
}

function cut(span: TableView['rows'][number][number], width: number) {
  const text = cutToWidth(sanitize(plainText(span)), width);
  return typeof span === 'string' ? text : { ...span, text };
}

/** Takes from the widest column that may be cut until the row fits, or nothing can be cut any more. */
function narrow(natural: readonly number[], columns: readonly Column[], available: number): readonly number[] {
  const widths = [...natural];
  let excess = widths.reduce((sum, width) => sum + width, 0) + GAP * (widths.length - 1) - available;
  while (excess > 0) {
    const candidates = widths.map((width, index) => (columns[index]?.whole ? 0 : width));
    const widest = candidates.indexOf(Math.max(...candidates));
    const width = widths[widest] ?? 0;
    if ((candidates[widest] ?? 0) <= NARROWEST) break;
    widths[widest] = width - 1;
    excess -= 1;
  }
  return widths;
}
