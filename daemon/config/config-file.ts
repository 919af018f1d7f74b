/** Reads the YAML configuration file: every unknown key and bad value at once, with its line. */
import { readFileSync } from 'node:fs';
import { Fault, messageOf, systemCodeOf } from '../../src/kernel/fault.js';
import { parseSettings } from '../../src/kernel/settings-file.js';
import { SETTINGS, type SettingKey, type Settings } from './settings.js';

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
export const parseConfig = (source: string, path: string): Partial<Settings> =>
  parseSettings(SETTINGS, {
    source,
    path,
    hint: 'orch serve --config-schema prints every key with its type',
  }) as Partial<Record<SettingKey, never>>;
