/** Files of value sets: finds, reads and validates them. */
import { basename } from 'node:path';
import { Fault } from '../../kernel/fault.js';
import { isModuleName } from '../../kernel/ids.js';
import type { NamedSet } from '../../language/inputs/fleet-values.js';
import { type ParsedValueSet, parseValueSet } from '../../language/inputs/value-set.js';
import { readFoundFile, readTextFile } from '../text-files.js';
import { filesBelow, isDirectory, type ModuleFile } from './find-modules.js';
import { type CheckedText, refuseInvalid } from './read-modules.js';

const ENDING = '.values.yaml';

export const isValuesFile = (path: string): boolean => path.endsWith(ENDING);

/** A file of a value set, which its name names. */
export interface ValuesFile extends CheckedText, Pick<NamedSet, 'name'> {
  readonly parsed: ParsedValueSet;
}

/** Checks the text of a file. Throws `usage` for a name that no value set can have. */
export function checkValuesFile({ path, source }: ModuleFile): ValuesFile {
  const parsed = parseValueSet(source);
  return { path, source, name: nameOfFile(path), parsed, valid: parsed.set !== null, diagnostics: parsed.diagnostics };
}

/** Returns the name of the value set in a file. Throws `usage`. */
function nameOfFile(path: string): string {
  const file = basename(path);
  const name = file.slice(0, -ENDING.length);
  if (isValuesFile(path) && isModuleName(name)) return name;
  throw new Fault('usage', `${path} is no file of a value set, because of its name`, {
    hint: `its name is that of the value set and ${ENDING}, such as prod${ENDING}`,
  });
}

/** Splits paths into those of modules, and the value sets of named files and of directories. Throws `invalid_values` with all errors. */
export function splitPaths(paths: readonly string[]): {
  readonly modules: readonly string[];
  readonly values: readonly ValuesFile[];
} {
  const files = paths.flatMap((path): readonly ModuleFile[] => {
    if (isValuesFile(path)) return [{ path, source: readTextFile(path) }];
    if (!isDirectory(path)) return [];
    return filesBelow(path)
      .filter(isValuesFile)
      .map((found) => ({ path: found, source: readFoundFile(found) }));
  });
  const values = files.map(checkValuesFile);
  refuseInvalid(values, 'invalid_values');
  refuseDoubles(values);
  return { modules: paths.filter((path) => !isValuesFile(path)), values };
}

/** Throws `usage` for two files of one value set. */
export function refuseDoubles(files: readonly Pick<ValuesFile, 'name' | 'path'>[]): void {
  const first = new Map<string, string>();
  for (const { name, path } of files) {
    const before = first.get(name);
    if (before !== undefined) throw new Fault('usage', `${before} and ${path} both hold the value set "${name}"`);
    first.set(name, path);
  }
}

/** Returns value sets with those of files in the place of stored ones. */
export const withFiles = (stored: readonly NamedSet[], files: readonly ValuesFile[]): readonly NamedSet[] => [
  ...stored.filter(({ name }) => files.every((file) => file.name !== name)),
  ...files.flatMap(({ name, parsed }) => (parsed.set === null ? [] : [{ name, set: parsed.set }])),
];
