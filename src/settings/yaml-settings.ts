/** Reads settings from YAML and reports every unknown key and invalid value with its line. */
import { IsArray, type TSchema, Unknown } from 'typebox';
import { isMap, isScalar, isSeq, LineCounter, type Pair, parseDocument } from 'yaml';
import { Fault, type FaultDetail } from '../kernel/fault.js';
import { validator } from '../kernel/validator.js';
import type { SettingTable } from './setting.js';

export interface SettingsFile {
  readonly source: string;
  /** Path, for messages only. */
  readonly path: string;
  /** Hint for an invalid file. */
  readonly hint: string;
}

/**
 * Returns the settings in the text by dotted key; null counts as absent.
 * @throws Fault `invalid_config` naming file, lines and reasons
 */
export function parseSettings(table: SettingTable, { source, path, hint }: SettingsFile): Record<string, unknown> {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines });
  const errors: FaultDetail[] = [];
  const lineOf = (offset: number | undefined) => lines.linePos(offset ?? 0);
  const complain = (pointer: string, offset: number | undefined, message: string) => {
    const { line, col } = lineOf(offset);
    errors.push({ path: pointer, message, line, column: col });
  };
  for (const error of document.errors) complain('', error.pos[0], error.message.split('\n')[0] ?? error.message);

  const keys = Object.keys(table);
  const found: Record<string, unknown> = {};
  const take = (pair: Pair, prefix: string) => {
    const name = isScalar(pair.key) ? String(pair.key.value) : '';
    const offset = isScalar(pair.key) ? pair.key.range?.[0] : undefined;
    const key = prefix + name;
    const setting = keys.find((candidate) => candidate === key);
    if (setting !== undefined) {
      const value = valueOfNode(pair.value, schemaOf(table, setting));
      if (value === null) return;
      for (const problem of validator(schemaOf(table, setting)).problems(value)) {
        complain(`/${key.replace('.', '/')}`, offset, `${key}: ${problem.message}`);
      }
      found[setting] = value;
    } else if (prefix === '' && keys.some((candidate) => candidate.startsWith(`${name}.`))) {
      if (isMap(pair.value)) for (const member of pair.value.items) take(member, `${name}.`);
      // A section whose settings are all commented out is null.
      else if (valueOfNode(pair.value, Unknown()) !== null) {
        complain(`/${name}`, offset, `${name} must hold settings of its own, such as "${name}:" with an indented line`);
      }
    } else {
      complain(`/${key.replace('.', '/')}`, offset, `unknown key "${key}"`);
    }
  };
  if (errors.length === 0 && document.contents !== null) {
    if (isMap(document.contents)) for (const pair of document.contents.items) take(pair, '');
    else complain('', 0, 'the file must hold a mapping of settings');
  }
  if (errors.length > 0) {
    const list = errors.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`).join('\n');
    throw new Fault('invalid_config', `the configuration is not valid:\n${list}`, {
      errors,
      hint,
    });
  }
  return found;
}

/** Returns the value of a node. A list may also be a text with commas, as on the command line. */
function valueOfNode(node: unknown, schema: TSchema): unknown {
  if (isSeq(node)) return node.items.map((item) => (isScalar(item) ? item.value : {}));
  if (node !== null && !isScalar(node)) return {};
  const value: unknown = node === null ? null : node.value;
  return IsArray(schema) && typeof value === 'string' ? splitWords(value) : value;
}

/** Splits `a, b` into words; returns none for an empty text. */
export const splitWords = (text: string): readonly string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');

function schemaOf(table: SettingTable, key: string): TSchema {
  const setting = table[key];
  if (setting === undefined) throw new Error(`there is no setting ${key}`);
  return setting.schema;
}
