/** Reads the YAML configuration file: every unknown key and bad value at once, with its line. */
import { readFileSync } from 'node:fs';
import { isMap, isScalar, LineCounter, type Pair, parseDocument } from 'yaml';
import { Fault, type FaultDetail, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { validator } from '../../src/kernel/validator.js';
import { SETTING_KEYS, SETTINGS, type SettingKey, type Settings } from './settings.js';

const MAX_BYTES = 256 * 1024;

/**
 * The settings that a file holds.
 * @param missingOk a file that is not there counts as empty
 * @throws Fault `invalid_config` naming file, lines and reasons
 */
export function readConfigFile(path: string, missingOk: boolean): Partial<Settings> {
  let source: string;
  try {
    source = readFileSync(path, 'utf8');
  } catch (error) {
    if (missingOk && systemCodeOf(error) === 'ENOENT') return {};
    throw new Fault('invalid_config', `cannot read the configuration file ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
  if (source.length > MAX_BYTES) throw new Fault('invalid_config', `${path} is larger than ${MAX_BYTES} bytes`);
  return parseConfig(source, path);
}

/** The settings in a YAML text; `path` is only for messages. */
export function parseConfig(source: string, path: string): Partial<Settings> {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines });
  const errors: FaultDetail[] = [];
  const lineOf = (offset: number | undefined) => lines.linePos(offset ?? 0);
  const complain = (pointer: string, offset: number | undefined, message: string) => {
    const { line, col } = lineOf(offset);
    errors.push({ path: pointer, message, line, column: col });
  };
  for (const error of document.errors) complain('', error.pos[0], error.message.split('\n')[0] ?? error.message);

  const found: Record<string, unknown> = {};
  const take = (pair: Pair, prefix: string) => {
    const name = isScalar(pair.key) ? String(pair.key.value) : '';
    const offset = isScalar(pair.key) ? pair.key.range?.[0] : undefined;
    const key = prefix + name;
    const setting = SETTING_KEYS.find((candidate) => candidate === key);
    if (setting !== undefined) {
      const value: unknown = isScalar(pair.value) ? pair.value.value : pair.value === null ? null : {};
      if (value === null) return;
      for (const problem of validator(SETTINGS[setting].schema).problems(value)) {
        complain(`/${key.replace('.', '/')}`, offset, `${key}: ${problem.message}`);
      }
      found[setting] = value;
    } else if (
      prefix === '' &&
      isMap(pair.value) &&
      SETTING_KEYS.some((candidate) => candidate.startsWith(`${name}.`))
    ) {
      for (const member of pair.value.items) take(member, `${name}.`);
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
      hint: 'orch serve --config-schema prints every key with its type',
    });
  }
  return found as Partial<Record<SettingKey, never>>;
}
