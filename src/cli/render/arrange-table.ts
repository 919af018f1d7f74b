/** Sorts tables and chooses their columns, as `--sort` and `--columns` say. */
import { Fault } from '../../kernel/fault.js';
import type { Outcome, TableCell, TableView, View } from '../outcome.js';
import { type Arrangement, columnName } from '../table-options.js';

/**
 * Returns the outcome with its tables arranged; names and records follow the rows of the table that they belong to.
 * Throws `usage` for an outcome without a table.
 */
export function arrange(outcome: Outcome, { sort, columns }: Arrangement): Outcome {
  const { view, names, records } = outcome;
  if (view === undefined) return outcome;
  const orders: (readonly number[])[] = [];
  const arranged = mapTables(view, (table) => {
    const order = sort === null ? [...table.rows.keys()] : sorted(table, sort);
    orders.push(order);
    return chosen({ ...table, rows: inOrder(table.rows, order) }, columns);
  });
  const [order, ...others] = orders;
  if (order === undefined) throw new Fault('usage', 'there is no table that --sort or --columns could arrange');
  const isOne = others.length === 0;
  const follow = <T>(all: readonly T[]): readonly T[] =>
    isOne && all.length === order.length ? inOrder(all, order) : all;
  return {
    ...outcome,
    view: arranged,
    ...(names === undefined ? {} : { names: follow(names) }),
    ...(records === undefined ? {} : { records: follow(records) }),
  };
}

const inOrder = <T>(all: readonly T[], order: readonly number[]): readonly T[] =>
  order.flatMap((index) => all.slice(index, index + 1));

function mapTables(view: View, change: (table: TableView) => TableView): View {
  if (view.kind === 'table') return change(view);
  if (view.kind === 'headed') return { ...view, body: mapTables(view.body, change) };
  if (view.kind === 'stack') return { ...view, views: view.views.map((part) => mapTables(part, change)) };
  return view;
}

function chosen(table: TableView, names: Arrangement['columns']): TableView {
  if (names === null) return table;
  const indexes = names.map((name) => table.columns.findIndex((column) => columnName(column) === name));
  return {
    ...table,
    chosen: true,
    columns: inOrder(table.columns, indexes).map((column) => ({ ...column, wide: false })),
    rows: table.rows.map((row) => inOrder(row, indexes)),
  };
}

/** Returns the indexes of the rows in order. Rows without a value come last in both directions. */
function sorted(table: TableView, { by, reversed }: NonNullable<Arrangement['sort']>): readonly number[] {
  const column = table.columns.findIndex((one) => columnName(one) === by);
  const cells = table.rows.map((row) => row[column] ?? '');
  const compare = (a: number, b: number): number => {
    const [left = '', right = ''] = [cells[a], cells[b]];
    if (isEmpty(left) || isEmpty(right)) return Number(isEmpty(left)) - Number(isEmpty(right));
    return reversed ? -compareCells(left, right) : compareCells(left, right);
  };
  return [...cells.keys()].sort(compare);
}

const textOf = (cell: TableCell): string => (typeof cell === 'string' ? cell : cell.text);

const orderOf = (cell: TableCell): number | null => (typeof cell !== 'string' && 'order' in cell ? cell.order : null);

const isEmpty = (cell: TableCell): boolean => ['', '-'].includes(textOf(cell));

/** Numbers within names count as numbers, so that web-2 comes before web-10. */
const collator = new Intl.Collator('en', { numeric: true });

function compareCells(left: TableCell, right: TableCell): number {
  const [a, b] = [orderOf(left), orderOf(right)];
  return a !== null && b !== null ? a - b : collator.compare(textOf(left), textOf(right));
}
