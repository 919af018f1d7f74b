/** The texts of `--values` and `--set`. This file does not load the parser. */
import { readTextFile } from '../text-files.js';
import type { LocalChoice } from './local-options.js';

/** The texts of `--values` and `--set`. */
export interface LocalTexts {
  readonly files: readonly { readonly path: string; readonly source: string }[];
  /** Words `MODULE:INPUT=VALUE`. */
  readonly set: readonly string[];
}

/** Reads the files of `--values`. Throws `usage`. */
export const readLocalTexts = ({ values, set }: Pick<LocalChoice, 'values' | 'set'>): LocalTexts => ({
  files: values.map((path) => ({ path, source: readTextFile(path) })),
  set,
});
