/** Chooses what writes the tables of a view, and loads cli-table3 only where it is used. */
import type { View } from '../outcome.js';
import type { WriteTable } from './render-view.js';

/** Maximum number of rows of a table that the library writes. */
const MOST_ROWS = 200;

/**
 * Returns what writes the tables of a view on a terminal; undefined for other output, and for tables that are too long for the library.
 * @param columns width of the terminal; null for other output
 */
export async function tableWriter(view: View, columns: number | null): Promise<WriteTable | undefined> {
  if (columns === null) return undefined;
  const rows = longestTable(view);
  if (rows === 0 || rows > MOST_ROWS) return undefined;
  return (await import('./terminal-table.js')).terminalTable;
}

function longestTable(view: View): number {
  switch (view.kind) {
    case 'table':
      return view.rows.length;
    case 'stack':
      return Math.max(0, ...view.views.map(longestTable));
    case 'headed':
      return longestTable(view.body);
    default:
      return 0;
  }
}
