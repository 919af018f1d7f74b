/** The commands of `orch config`: what this client would do, and why. */
import type { KeySource } from '../../client/connection.js';
import { configDirectory, keepsState, profilesPath, stateDirectory } from '../../client/operator-files.js';
import { proxyFor, proxyText } from '../../client/proxy.js';
import { urlText } from '../../client/server-url.js';
import { formatFingerprint } from '../../identity/fingerprint.js';
import { explainChoice } from '../connect-api.js';
import type { Context } from '../context.js';
import { defineCommand } from '../define-command.js';
import type { Env } from '../env.js';
import { flag } from '../options.js';
import { type Column, fieldsOf, type TableView } from '../outcome.js';
import { choosePager } from '../render/pager.js';
import { colorChoice } from '../render/paint.js';

/** One effective setting of this client. */
interface Setting {
  readonly name: string;
  readonly value: string | boolean | null;
  /** The flag, variable or profile that gives it, or `default`. */
  readonly origin: string;
}

const SETTING_COLUMNS: readonly Column[] = [{ title: 'SETTING', whole: true }, { title: 'VALUE' }, { title: 'ORIGIN' }];

/** `orch config show`. */
export const showConfig = defineCommand({
  examples: ['orch config show', 'orch config show --origin', 'orch config show --origin --profile work'],
  detail: [
    'Sends nothing. Private keys, tokens and the password of a proxy are never shown. -o json always has the origins.',
  ],
  access: 'local',
  columns: SETTING_COLUMNS,
  connection: true,
  options: { origin: flag('show where each value comes from') },
  run: async (context, { origin }) => {
    const settings = await effectiveSettings(context);
    return {
      body: settings,
      names: settings.map(({ name }) => name),
      view: origin
        ? originTable(settings)
        : fieldsOf(settings.map(({ name, value }) => [name, valueText(value)] as const)),
    };
  },
});

const originTable = (settings: readonly Setting[]): TableView => ({
  kind: 'table',
  columns: SETTING_COLUMNS,
  rows: settings.map(({ name, value, origin }) => [name, valueText(value), origin]),
  empty: 'No settings.',
});

function valueText(value: Setting['value']): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value ?? '-';
}

async function effectiveSettings(context: Context): Promise<readonly Setting[]> {
  const { env } = context;
  const { connection, origins } = await explainChoice(context);
  const { url, profile, pin, ca, key, token, allowUnboundLogin, allowPlainHttp } = connection;
  const proxy = proxyFor(url, env);
  return [
    { name: 'url', value: urlText(url), origin: origins.url },
    { name: 'profile', value: profile, origin: origins.profile },
    { name: 'tls-fingerprint', value: pin === null ? null : formatFingerprint(pin), origin: origins.trust },
    { name: 'ca', value: ca, origin: origins.trust },
    { name: 'key', value: keyText(key), origin: origins.key },
    { name: 'token', value: token === null ? null : 'set, not shown', origin: origins.token },
    { name: 'allow-unbound-login', value: allowUnboundLogin, origin: origins.allowUnboundLogin },
    { name: 'allow-plain-http', value: allowPlainHttp, origin: origins.allowPlainHttp },
    { name: 'proxy', value: proxy === null ? null : proxyText(proxy), origin: proxyOrigin(env) },
    ...outputSettings(context),
    {
      name: 'state',
      value: keepsState(env) ? stateDirectory(env) : null,
      origin: keepsState(env) ? directoryOrigin(env, 'XDG_STATE_HOME') : 'ORCH_NO_STATE',
    },
    { name: 'profiles', value: profilesPath(env), origin: directoryOrigin(env, 'XDG_CONFIG_HOME') },
    { name: 'config-directory', value: configDirectory(env), origin: directoryOrigin(env, 'XDG_CONFIG_HOME') },
  ];
}

function outputSettings({ env, globals, streams }: Context): readonly Setting[] {
  const pager = choosePager(env);
  const color = colorChoice(env, globals.color, streams.stdout.isTTY === true);
  return [
    { name: 'output', value: globals.output, origin: globals.outputFrom ?? 'default' },
    { name: 'color', value: color.isOn, origin: color.from },
    {
      name: 'pager',
      value: globals.noPager ? null : (pager?.command ?? null),
      origin: globals.noPager ? '--no-pager' : pagerOrigin(env),
    },
  ];
}

function keyText(key: KeySource): string {
  if (key.kind === 'file') return key.path;
  if (key.kind === 'pem') return 'set, not shown';
  return `in the ssh-agent${key.wanted === null ? '' : `: ${key.wanted}`}`;
}

const proxyOrigin = (env: Env): string => ['https_proxy', 'HTTPS_PROXY'].find((name) => env[name]) ?? 'default';

const directoryOrigin = (env: Env, variable: string): string => (env[variable]?.startsWith('/') ? variable : 'default');

const pagerOrigin = (env: Env): string =>
  env.ORCH_PAGER === undefined ? (env.PAGER ? 'PAGER' : 'default') : 'ORCH_PAGER';
