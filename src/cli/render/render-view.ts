/** Renders views as lines of text, with tables that fit the terminal. */
import { assertNever } from '../../kernel/fault.js';
import {
  type Column,
  type FieldsView,
  type Line,
  type Span,
  type Style,
  styled,
  type TableView,
  type View,
} from '../outcome.js';
import { type Paint, plainText, spansOf } from './paint.js';
import { cutToWidth, sanitize, widthOf } from './terminal-text.js';

/** Renders a view as painted lines. */
export const renderView = (view: View, { paint, ...options }: RenderOptions): readonly string[] =>
  viewLines(view, options).map((line) => paint.line(line));

/** Lays out a view as lines that are not painted yet. */
export function viewLines(view: View, options: TableOptions): readonly Line[] {
  switch (view.kind) {
    case 'table':
      return tableLines(view, options);
    case 'fields':
      return fieldLines(view);
    case 'lines':
      return view.lines;
    case 'stack': {
      const parts = view.views.map((part) => viewLines(part, options));
      const filled = parts.filter((part) => part.length > 0);
      return filled.flatMap((part, index) => (index === 0 ? part : ['', ...part]));
    }
    case 'headed': {
      const body = viewLines(view.body, options);
      return body.length === 0 ? [] : [view.head, ...body];
    }
    default:
      return assertNever(view);
  }
}

function fieldLines({ fields }: FieldsView): readonly Line[] {
  const width = fields.reduce((most, [label]) => Math.max(most, widthOf(label)), 0);
  return fields.map(([label, value]) =>
    trimmedEnd([styled('dim', sanitize(label)), ' '.repeat(width - widthOf(label) + GAP), ...spansOf(value)]),
  );
}

export interface TableOptions {
  readonly wide: boolean;
  /** Width of the terminal; null for no limit. */
  readonly columns: number | null;
}

interface RenderOptions extends TableOptions {
  readonly paint: Paint;
}

const GAP = 2;
/** Minimum width of a cut column. */
const NARROWEST = 6;

/** A column with its cells from top to bottom and its uncut width. */
interface Shown {
  readonly column: Column;
  readonly cells: readonly Cell[];
  readonly width: number;
}

/** A sanitised cell. */
interface Cell {
  readonly text: string;
  readonly width: number;
  /** Style; undefined for plain text. */
  readonly style: Style | undefined;
}

/** Lays out a table in time linear in its cells; an empty table gives its sentence. */
function tableLines(view: TableView, { wide, columns }: TableOptions): readonly Line[] {
  if (view.rows.length === 0) return [view.empty];
  const natural = view.columns.flatMap((column, index): Shown | readonly [] => {
    if (column.wide && !wide) return [];
    const cells = view.rows.map((row) => cellOf(row[index] ?? ''));
    const title = cellOf(styled('dim', column.title));
    const width = cells.reduce((most, cell) => Math.max(most, cell.width), title.width);
    return { column, cells: view.titles === false ? cells : [title, ...cells], width };
  });
  const shown = columns === null ? natural : fitTo(natural, columns);
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

function cellOf(span: Span): Cell {
  const text = sanitize(plainText(span));
  return { text, width: widthOf(text), style: typeof span === 'string' ? undefined : span.style };
}

function padded(
  cell: Cell,
  { width, column }: { readonly width: number; readonly column: Column },
): readonly [Span, Span] {
  const text = cell.width > width ? cutToWidth(cell.text, width) : cell.text;
  const padding = ' '.repeat(width - (cell.width > width ? widthOf(text) : cell.width));
  const span = cell.style === undefined ? text : styled(cell.style, text);
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

/**
 * Cuts columns until a row fits. If that is not enough, drops columns from the right, cuttable ones first. The
 * first column always stays.
 */
function fitTo(natural: readonly Shown[], available: number): readonly Shown[] {
  let left = natural;
  for (;;) {
    const widths = narrow(left, available);
    if (widths !== null || left.length <= 1) {
      return left.map((shown, index) => ({ ...shown, width: widths?.[index] ?? shown.width }));
    }
    const cuttable = left.findLastIndex(({ column }, index) => index > 0 && !column.whole);
    left = left.toSpliced(cuttable > 0 ? cuttable : left.length - 1, 1);
  }
}

/** Shrinks the widest cuttable column until the row fits. Returns null if no column can shrink further. */
function narrow(shown: readonly Shown[], available: number): readonly number[] | null {
  const widths = shown.map(({ width }) => width);
  let excess = widths.reduce((sum, width) => sum + width, 0) + GAP * (widths.length - 1) - available;
  while (excess > 0) {
    const candidates = widths.map((width, index) => (shown[index]?.column.whole ? 0 : width));
    const widest = candidates.reduce((best, width, index) => (width > (candidates[best] ?? 0) ? index : best), 0);
    const width = candidates[widest] ?? 0;
    if (width <= NARROWEST) return null;
    widths[widest] = width - 1;
    excess -= 1;
  }
  return widths;
}
