/** Renders views as lines of text, with tables that fit the terminal. */
import { assertNever } from '../../kernel/fault.js';
import {
  type Column,
  type FieldsView,
  type Line,
  type LinesView,
  proseOf,
  type Span,
  type Style,
  styled,
  type TableCell,
  type TableView,
  type View,
} from '../outcome.js';
import { wrapAtWords } from './fit-lines.js';
import { type Paint, plainText, spansOf } from './paint.js';
import { cutToWidth, sanitize, widthOf } from './terminal-text.js';

/** Writes a table that was fitted to the terminal as painted lines; null if it cannot. */
export type WriteTable = (columns: readonly FittedColumn[], paint: Paint) => readonly string[] | null;

interface RenderOptions extends TableOptions {
  readonly paint: Paint;
  /** Writes tables that are not empty [default: like all other lines]. */
  readonly writeTable?: WriteTable | undefined;
}

/** Renders a view as painted lines. */
export function renderView(view: View, { paint, writeTable, ...options }: RenderOptions): readonly string[] {
  const line = (one: Line): string => paint.line(one);
  if (writeTable === undefined) return viewLines(view, options).map(line);
  const { columns } = options;
  const table = (one: TableView): readonly string[] =>
    (one.rows.length === 0 ? null : writeTable(fittedColumns(one, options), paint)) ??
    tableLines(one, options).map(line);
  return layOut<string>(view, { columns, line, table });
}

/** Lays out a view as lines that are not painted yet. */
export const viewLines = (view: View, options: TableOptions): readonly Line[] =>
  layOut<Line>(view, { columns: options.columns, line: (one) => one, table: (one) => tableLines(one, options) });

interface Leaves<T> {
  readonly columns: TableOptions['columns'];
  line(line: Line): T;
  table(view: TableView): readonly T[];
}

function layOut<T>(view: View, leaves: Leaves<T>): readonly T[] {
  switch (view.kind) {
    case 'table':
      return leaves.table(view);
    case 'fields':
      return fieldLines(view, leaves.columns).map(leaves.line);
    case 'lines':
      return proseLines(view, leaves.columns).map(leaves.line);
    case 'stack': {
      const parts = view.views.map((part) => layOut(part, leaves));
      const filled = parts.filter((part) => part.length > 0);
      return filled.flatMap((part, index) => (index === 0 ? part : [leaves.line(''), ...part]));
    }
    case 'headed': {
      const body = layOut(view.body, leaves);
      return body.length === 0 ? [] : [leaves.line(view.head), ...body];
    }
    default:
      return assertNever(view);
  }
}

function fieldLines({ fields }: FieldsView, columns: number | null): readonly Line[] {
  const width = fields.reduce((most, [label]) => Math.max(most, widthOf(label)), 0) + GAP;
  return fields.flatMap(([label, value]) => {
    const line = [styled('dim', sanitize(label)), ' '.repeat(width - widthOf(label)), ...spansOf(value)];
    return columns === null ? [trimmedEnd(line)] : wrapAtWords(trimmedEnd(line), columns, width, width);
  });
}

function proseLines({ lines, hang }: LinesView, columns: number | null): readonly Line[] {
  if (hang === undefined || columns === null) return lines;
  return lines.flatMap((line) => wrapAtWords(line, columns, hang));
}

export interface TableOptions {
  readonly wide: boolean;
  /** Width of the terminal; null for no limit. */
  readonly columns: number | null;
}

/** Columns between two columns of a table. */
export const GAP = 2;
/** Minimum width of a cut column, and the one down to which columns are cut while others can be spared. */
const NARROWEST = 6;
const COMFORTABLE = 12;

/** A column with its cells from top to bottom, the title first, and its width. */
export interface FittedColumn {
  readonly column: Column;
  readonly cells: readonly Cell[];
  readonly width: number;
}

/** A sanitised cell. */
export interface Cell {
  readonly text: string;
  readonly width: number;
  /** Style; undefined for plain text. */
  readonly style: Style | undefined;
}

/** Lays out a table in time linear in its cells; an empty table gives its sentence. */
function tableLines(view: TableView, options: TableOptions): readonly Line[] {
  if (view.rows.length === 0) return proseLines(proseOf([view.empty]), options.columns);
  const shown = fittedColumns(view, options);
  const count = shown[0]?.cells.length ?? 0;
  return Array.from({ length: count }, (_, row) =>
    trimmedEnd(
      shown.flatMap(({ column, cells, width }, index) => {
        const cell = cells[row];
        const spans = cell === undefined ? [] : padded(cell, { width, column });
        return index === 0 ? spans : [' '.repeat(GAP), ...spans];
      }),
    ),
  );
}

/** Returns the columns of a table that fit, each no wider than it may be. */
function fittedColumns(view: TableView, { wide, columns }: TableOptions): readonly FittedColumn[] {
  const natural = view.columns.flatMap((column, index): FittedColumn | readonly [] => {
    if (column.wide && !wide) return [];
    const cells = view.rows.map((row) => cellOf(row[index] ?? ''));
    const title = cellOf(styled('dim', column.title));
    const width = cells.reduce((most, cell) => Math.max(most, cell.width), title.width);
    return { column, cells: view.titles === false ? cells : [title, ...cells], width };
  });
  return columns === null ? natural : fitTo(natural, { available: columns, chosen: view.chosen === true });
}

/** Returns the text of a cell, cut to the width of its column. */
export const cutCell = ({ text, width, style }: Cell, columns: number): Span => {
  const cut = width > columns ? cutToWidth(text, columns) : text;
  return style === undefined ? cut : styled(style, cut);
};

function cellOf(cell: TableCell): Cell {
  const text = sanitize(typeof cell === 'string' ? cell : cell.text).trimEnd();
  return { text, width: widthOf(text), style: typeof cell === 'string' || text === '' ? undefined : cell.style };
}

function padded(
  cell: Cell,
  { width, column }: { readonly width: number; readonly column: Column },
): readonly [Span, Span] {
  const span = cutCell(cell, width);
  const padding = ' '.repeat(width - (cell.width > width ? widthOf(plainText(span)) : cell.width));
  return column.right ? [padding, span] : [span, padding];
}

/** Removes the spaces at the end of a line. */
function trimmedEnd(spans: readonly Span[]): readonly Span[] {
  for (let length = spans.length; length > 0; length -= 1) {
    const last = spans[length - 1] ?? '';
    const text = plainText(last).trimEnd();
    if (text !== '') return [...spans.slice(0, length - 1), typeof last === 'string' ? text : styled(last.style, text)];
  }
  return [];
}

interface Room {
  /** Columns of the terminal. */
  readonly available: number;
  /** True if no column may be dropped. */
  readonly chosen: boolean;
}

/**
 * Cuts columns until a row fits, and drops those that do not fit: first the spare ones, in their order, then from the
 * right, cuttable ones first. The first column always stays.
 */
function fitTo(natural: readonly FittedColumn[], { available, chosen }: Room): readonly FittedColumn[] {
  let left = natural;
  for (;;) {
    const spare = chosen ? -1 : firstSpare(left);
    const widths =
      spare >= 0
        ? narrow(left, { available, leastOf: ({ whole }) => (whole ? null : COMFORTABLE) })
        : (narrow(left, { available, leastOf: ({ whole }) => (whole ? null : NARROWEST) }) ??
          narrow(left, { available, leastOf: ({ whole, least = null }) => (whole ? least : NARROWEST) }));
    if (widths !== null || chosen || left.length <= 1) {
      return left.map((shown, index) => ({ ...shown, width: widths?.[index] ?? shown.width }));
    }
    const cuttable = left.findLastIndex(({ column }, index) => index > 0 && !column.whole);
    const dropped = spare >= 0 ? spare : cuttable > 0 ? cuttable : left.length - 1;
    left = left.toSpliced(dropped, 1);
  }
}

/** Returns the index of the column that is given up first; -1 if there is none. */
function firstSpare(shown: readonly FittedColumn[]): number {
  const orders = shown.map(({ column }) => column.spare ?? Number.POSITIVE_INFINITY);
  const first = Math.min(...orders);
  return Number.isFinite(first) ? orders.indexOf(first) : -1;
}

interface Narrowing {
  readonly available: number;
  /** Returns the width down to which a column is cut; null for one that is not cut. */
  leastOf(column: Column): number | null;
}

/** Shrinks the widest cuttable column until the row fits. Returns null if no column can shrink further. */
function narrow(shown: readonly FittedColumn[], { available, leastOf }: Narrowing): readonly number[] | null {
  const widths = shown.map(({ width }) => width);
  const least = shown.map(({ column }) => leastOf(column) ?? Number.POSITIVE_INFINITY);
  let excess = widths.reduce((sum, width) => sum + width, 0) + GAP * (widths.length - 1) - available;
  while (excess > 0) {
    const candidates = widths.map((width, index) => (width > (least[index] ?? 0) ? width : 0));
    const widest = candidates.reduce((best, width, index) => (width > (candidates[best] ?? 0) ? index : best), 0);
    const width = candidates[widest] ?? 0;
    if (width === 0) return null;
    widths[widest] = width - 1;
    excess -= 1;
  }
  return widths;
}
