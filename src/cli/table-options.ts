/** `--sort` and `--columns`: the options of every command that prints a table. */
import { Fault } from '../kernel/fault.js';
import { choices, listWords, type Option, type Options, text } from './options.js';
import type { Column } from './outcome.js';

/** How the operator wants a table. */
export interface Arrangement {
  /** Name of the column that orders the rows; null for the order of the orchestrator. */
  readonly sort: { readonly by: string; readonly reversed: boolean } | null;
  /** Names of the shown columns; null for all that fit. */
  readonly columns: readonly string[] | null;
}

/** Returns the name of a column on the command line: `node-id` for NODE ID. */
export const columnName = ({ title }: Pick<Column, 'title'>): string => title.toLowerCase().replaceAll(' ', '-');

interface TableOptions extends Options {
  readonly sort: Option<Arrangement['sort']>;
  readonly columns: Option<readonly string[]>;
}

/** Returns the options of a command that prints a table with these columns; null without columns. */
export function tableOptions(columns: readonly Column[]): TableOptions | null {
  const names = columns.map(columnName).filter((name) => name !== '');
  if (names.length === 0) return null;
  return {
    sort: {
      ...text('COLUMN', 'sort by a column; -COLUMN reverses the order'),
      parse: (given: readonly string[], flag: string) => parseSort(given.at(-1), names, flag),
    },
    columns: choices('LIST', names, 'columns to show, also those of -o wide'),
  };
}

/** Throws `usage`. */
function parseSort(value: string | undefined, names: readonly string[], flag: string): Arrangement['sort'] {
  if (value === undefined) return null;
  const by = value.replace(/^-/, '').toLowerCase();
  if (!names.includes(by)) throw new Fault('usage', `${flag} takes ${listWords(names)}, not "${value}"`);
  return { by, reversed: value.startsWith('-') };
}
