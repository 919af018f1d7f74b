/** Puts the settings together: flag, then environment, then file, then default. */
import { existsSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import * as Type from 'typebox';
import { Fault } from '../../src/kernel/fault.js';
import { parseIpNetwork } from '../../src/kernel/ip-network.js';
import { splitWords } from '../../src/kernel/settings-file.js';
import { validator } from '../../src/kernel/validator.js';
import { readConfigFile } from './config-file.js';
import { flatName, SETTING_KEYS, SETTINGS, type SettingKey, type Settings } from './settings.js';

/** Flags as the command line gave them, by flat name. */
export type RawFlags = Readonly<Record<string, string | boolean | undefined>>;

export interface SettingSources {
  readonly flags: RawFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The file named on the command line or in `ORCH_SERVE_CONFIG`, or null for the standard place. */
  readonly configFile: string | null;
  readonly isRoot: boolean;
}

const STANDARD_CONFIG = '/etc/orch/orchestrator.yaml';
const ENV_PREFIX = 'ORCH_SERVE_';

/**
 * @throws Fault `invalid_config` that names the flag, variable or file line, and what is wrong with it
 */
export function loadSettings(sources: SettingSources): Settings {
  const file = sources.configFile ?? STANDARD_CONFIG;
  const fromFile = readConfigFile(file, sources.configFile === null);
  refuseUnknownVariables(sources.env);
  const settings: Record<string, unknown> = {};
  for (const key of SETTING_KEYS) {
    const variable = ENV_PREFIX + flatName(key).toUpperCase();
    const flag = sources.flags[flatName(key)];
    const given = sources.env[variable];
    if (flag !== undefined) settings[key] = convert(key, flag, `--${flatName(key).replaceAll('_', '-')}`);
    else if (given !== undefined) settings[key] = convert(key, given, variable);
    else settings[key] = fromFile[key] ?? (SETTINGS[key].schema as { default?: unknown }).default;
  }
  if (settings.data_dir === '') settings.data_dir = standardDataDir(sources.env, sources.isRoot);
  return checked(settings as unknown as Settings);
}

/** `/var/lib/orch` for root, else below the user's state directory. */
export function standardDataDir(env: SettingSources['env'], isRoot: boolean): string {
  if (isRoot) return '/var/lib/orch';
  return join(env.XDG_STATE_HOME || join(homedir(), '.local', 'state'), 'orch', 'serve');
}

function convert(key: SettingKey, raw: string | boolean, source: string): unknown {
  const { schema } = SETTINGS[key];
  let value: unknown = raw;
  if (typeof raw === 'string' && Type.IsInteger(schema) && /^-?\d+$/.test(raw)) value = Number(raw);
  if (typeof raw === 'string' && Type.IsBoolean(schema))
    value = { true: true, false: false, 1: true, 0: false }[raw] ?? raw;
  if (typeof raw === 'string' && Type.IsArray(schema)) value = splitWords(raw);
  const problem = validator(schema).problems(value)[0];
  if (problem) {
    const code = source.startsWith('--') ? 'usage' : 'invalid_config';
    throw new Fault(code, `${source}: ${problem.message} (given: ${JSON.stringify(raw)})`);
  }
  return value;
}

function refuseUnknownVariables(env: SettingSources['env']): void {
  const known = new Set(SETTING_KEYS.map((key) => ENV_PREFIX + flatName(key).toUpperCase()));
  for (const extra of ['CONFIG', 'READY_FILE']) known.add(ENV_PREFIX + extra);
  const unknown = Object.keys(env).filter((name) => name.startsWith(ENV_PREFIX) && !known.has(name));
  if (unknown.length > 0) {
    throw new Fault('invalid_config', `unknown environment variable ${unknown.join(', ')}`, {
      hint: 'orch serve --help lists every setting with its variable',
    });
  }
}

/** Rules between settings. */
function checked(settings: Settings): Settings {
  const refuse = (message: string, hint?: string) => {
    throw new Fault('invalid_config', message, hint === undefined ? {} : { hint });
  };
  if ((settings.tls_cert === '') !== (settings.tls_key === '')) refuse('tls_cert and tls_key go together');
  for (const key of ['tls_cert', 'tls_key'] as const) {
    if (settings[key] !== '' && !existsSync(settings[key])) refuse(`${key}: there is no file ${settings[key]}`);
  }
  if (!settings.tls_enabled && !settings.trust_proxy_tls && !isLoopback(settings.api_host)) {
    refuse(
      `without TLS the API may only listen on loopback, not on ${settings.api_host}`,
      'leave TLS on, or set trust_proxy_tls when a proxy in front of it terminates TLS',
    );
  }
  if (settings.api_spki !== '' && !/^[0-9a-f]{64}$/i.test(settings.api_spki)) {
    refuse('api_spki: must be the 64 hex digits of a SHA-256');
  }
  if (settings.bootstrap_username !== '' && settings.bootstrap_key === '') {
    refuse('bootstrap_username goes with bootstrap_key');
  }
  for (const network of settings['notifications.allow_networks']) {
    if (parseIpNetwork(network) === null) {
      refuse(`notifications.allow_networks: "${network}" is no network`, 'write networks as 10.0.0.0/8 or fd00::/8');
    }
  }
  return settings;
}

/** A name that only begins like an address of the loopback network may be anywhere. */
const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
