/** Loads the settings of `orch serve`: flag, then environment variable, then YAML file, then default. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import * as Type from 'typebox';
import { Fault, isFault, messageOf, systemCodeOf } from '../kernel/fault.js';
import { xdgDirectory } from '../kernel/home-directory.js';
import { parseIpNetwork } from '../kernel/ip-network.js';
import { validator } from '../kernel/validator.js';
import { hostProblem, withoutBrackets } from './advertised-host.js';
import { SERVE_SETTINGS, type Settings } from './serve.js';
import { defaultsOf, flagOf, flatName, type Setting, variableOf } from './setting.js';
import { parseSettings, splitWords } from './yaml-settings.js';

/** Flags of the command line by flat name. */
export type RawFlags = Readonly<Record<string, string | boolean | undefined>>;

export interface SettingSources {
  readonly flags: RawFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Path from the command line or `ORCH_SERVE_CONFIG`; null for the standard path. */
  readonly configFile: string | null;
  readonly isRoot: boolean;
  /** Data directory if nothing names one [default: `standardDataDir`]. */
  readonly dataDir?: string;
}

const STANDARD_CONFIG = '/etc/orch/orchestrator.yaml';
const MAX_BYTES = 256 * 1024;
const VARIABLES = 'ORCH_SERVE_';

/**
 * Returns every setting of `orch serve`. Tests pass a `table` with other defaults.
 * @throws Fault `invalid_config` or `usage` that names the flag, variable or file line, and what is wrong with it
 */
export function loadSettings(sources: SettingSources, table: typeof SERVE_SETTINGS = SERVE_SETTINGS): Settings {
  const fromFile = readConfigFile(sources.configFile ?? STANDARD_CONFIG, sources.configFile === null);
  refuseUnknownVariables(sources.env);
  const settings: Record<string, unknown> = { ...defaultsOf(table), ...fromFile };
  for (const [key, setting] of Object.entries(table)) {
    const variable = variableOf(VARIABLES, key);
    const flag = sources.flags[flatName(key)];
    const given = sources.env[variable];
    if (flag !== undefined) settings[key] = convert(setting, flag, flagOf(key, setting).flag);
    else if (given !== undefined) settings[key] = convert(setting, given, variable);
  }
  if (settings.data_dir === '') settings.data_dir = sources.dataDir ?? standardDataDir(sources.env, sources.isRoot);
  return checked(settings as unknown as Settings);
}

/** Returns `/var/lib/orch` for root, otherwise a directory below the user's state directory. */
export function standardDataDir(env: SettingSources['env'], isRoot: boolean): string {
  if (isRoot) return '/var/lib/orch';
  return join(
    xdgDirectory(env, 'XDG_STATE_HOME', () => userInfo().homedir),
    'orch',
    'serve',
  );
}

/**
 * Returns the settings in a file.
 * @param missingOk a missing file counts as empty
 * @throws Fault `invalid_config` naming file, lines and reasons
 */
function readConfigFile(path: string, missingOk: boolean): Record<string, unknown> {
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
  const hint = 'orch serve --config-schema prints every key with its type';
  return parseSettings(SERVE_SETTINGS, { source, path, hint });
}

function convert({ schema }: Setting, raw: string | boolean, source: string): unknown {
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
  const known = new Set(Object.keys(SERVE_SETTINGS).map((key) => variableOf(VARIABLES, key)));
  for (const extra of ['CONFIG', 'READY_FILE']) known.add(VARIABLES + extra);
  const unknown = Object.keys(env).filter((name) => name.startsWith(VARIABLES) && !known.has(name));
  if (unknown.length > 0) {
    throw new Fault('invalid_config', `unknown environment variable ${unknown.join(', ')}`, {
      hint: 'orch serve --help lists every setting; its variable is ORCH_SERVE_ and the name of the flag in capitals',
    });
  }
}

/** Checks the rules between settings. */
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
  if (settings.store !== '' && !/^postgres(ql)?:\/\//.test(settings.store)) {
    refuse(
      'store: must be the URL of a PostgreSQL database',
      'write postgres://USER@HOST:PORT/DATABASE, or leave store out for a file in data_dir',
    );
  }
  if (settings.store_password_file !== '' && settings.store === '') refuse('store_password_file goes with store');
  if (settings.bootstrap_username !== '' && settings.bootstrap_key === '') {
    refuse('bootstrap_username goes with bootstrap_key');
  }
  for (const network of settings['notifications.allow_networks']) {
    if (parseIpNetwork(network) === null) {
      refuse(`notifications.allow_networks: "${network}" is no network`, 'write networks as 10.0.0.0/8 or fd00::/8');
    }
  }
  const { metrics_token: token, metrics_token_file: tokenFile } = settings;
  if (token !== '' && tokenFile !== '') refuse('metrics_token and metrics_token_file exclude each other');
  const { advertised_host: host } = settings;
  const problem = host === '' ? null : hostProblem(host);
  if (problem !== null) {
    refuse(
      `advertised_host: ${JSON.stringify(host)} ${problem}`,
      'write a name such as orch.example.org, or an address',
    );
  }
  return {
    ...settings,
    advertised_host: withoutBrackets(host),
    metrics_token: tokenFile === '' ? token : tokenIn(tokenFile),
  };
}

/** Returns the token in a file. Throws `invalid_config` for one that others may read, that is empty, or cannot be read. */
function tokenIn(file: string): string {
  const refuse = (why: string, hint: string, cause?: unknown) =>
    new Fault('invalid_config', `metrics_token_file: ${file} ${why}`, { hint, cause });
  try {
    if ((statSync(file).mode & 0o077) !== 0) throw refuse('may be read by others', `chmod 600 ${file}`);
    const token = readFileSync(file, 'utf8').trim();
    if (!/^[!-~]{1,512}$/.test(token)) throw refuse('holds no token', `openssl rand -hex 32 > ${file}`);
    return token;
  } catch (error) {
    if (isFault(error)) throw error;
    throw refuse(
      `cannot be read: ${messageOf(error)}`,
      'make it readable for the user who runs orch serve alone',
      error,
    );
  }
}

/** Returns true for loopback. A name such as 127.example.com may resolve to any address, so it does not count. */
const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
