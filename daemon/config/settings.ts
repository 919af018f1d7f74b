/** Every setting of `orch serve`: one table from which flags, environment, YAML file, schema and documentation derive. */
import * as Type from 'typebox';

const port = (description: string, standard: number) => ({
  schema: Type.Integer({ minimum: 0, maximum: 65535, default: standard, description }),
  live: false,
});
const text = (description: string, standard = '') => ({
  schema: Type.String({ default: standard, description }),
  live: false,
});
const flag = (description: string, standard: boolean, live = false) => ({
  schema: Type.Boolean({ default: standard, description }),
  live,
});
const number = (description: string, standard: number, bounds: { minimum: number; maximum: number }, live = false) => ({
  schema: Type.Integer({ ...bounds, default: standard, description }),
  live,
});

const words = (description: string) => ({
  schema: Type.Array(Type.String(), { default: [], description }),
  live: true,
});

const MEBIBYTE = 1024 * 1024;

/**
 * By dotted key: the part before the dot is a mapping in the YAML file. `live` settings take effect on SIGHUP, the others
 * at the next start. An empty string means unset.
 */
export const SETTINGS = {
  agent_port: port('TCP port of the agent link; 0 picks a free one', 4747),
  agent_host: text('Address that the agent link listens on', '0.0.0.0'),
  api_port: port('TCP port of the API; 0 picks a free one', 4748),
  api_host: text('Address that the API listens on', '127.0.0.1'),
  advertised_host: text('Name or address under which this host is reached; goes into the API certificate'),
  data_dir: text('Directory of keys and store; default /var/lib/orch for root, else $XDG_STATE_HOME/orch/serve'),
  bootstrap_key: text('Public key of the first operator (hex or an OpenSSH line); used only while there is none'),
  bootstrap_username: text('Name of the first operator'),
  tls_enabled: flag('Serve the API over TLS; without it only on loopback or behind a proxy', true),
  tls_cert: text('PEM file of a certificate for the API instead of the self-signed one'),
  tls_key: text('PEM file of the private key of tls_cert'),
  trust_proxy_tls: flag('The API is behind a proxy that terminates TLS: trust its X-Forwarded-For and -Proto', false),
  api_spki: text("SHA-256 of the SPKI of the proxy's certificate in hex, so that logins stay bound to it"),
  removal_guard: number('Most removals of one apply without allow_removals', 10, { minimum: 0, maximum: 20_000 }, true),
  pending_capacity: number('Most agents that wait for approval', 100, { minimum: 1, maximum: 10_000 }, true),
  session_token_expiry_secs: number(
    'Life of a session token in seconds',
    3600,
    { minimum: 60, maximum: 2_592_000 },
    true,
  ),
  'drift.enabled': flag('Check agents for drift by themselves', true, true),
  'drift.interval': number(
    'Seconds in which each agent is checked once',
    3600,
    { minimum: 1, maximum: 2_592_000 },
    true,
  ),
  'drift.max_concurrent': number('Most scheduled checks at a time', 8, { minimum: 1, maximum: 1000 }, true),
  'drift.skip_recently_applied': number(
    'Seconds after an apply in which the agent is not checked by itself',
    300,
    { minimum: 0, maximum: 2_592_000 },
    true,
  ),
  'drift.retention_days': number('Days that drift records are kept', 30, { minimum: 1, maximum: 36_500 }, true),
  'retention.operations_days': number(
    'Days that operations with their results are kept; those that the managed state rests on stay',
    365,
    { minimum: 1, maximum: 36_500 },
    true,
  ),
  'retention.outputs_days': number('Days that outputs of scripts are kept', 90, { minimum: 1, maximum: 36_500 }, true),
  'retention.notifications_days': number('Days that notifications are kept', 90, { minimum: 1, maximum: 36_500 }, true),
  'retention.transcripts_days': number(
    'Days that recordings of terminals are kept',
    90,
    { minimum: 1, maximum: 36_500 },
    true,
  ),
  'terminal.record': {
    schema: Type.Enum(['required', 'best_effort', 'off'], {
      default: 'best_effort',
      description:
        'Recording of terminals; required: no session without one; best_effort: the session goes on without it',
    }),
    live: true,
  },
  'terminal.idle_secs': number(
    'Seconds without a key typed after which a terminal is closed; 0 never closes one for that',
    0,
    { minimum: 0, maximum: 2_592_000 },
    true,
  ),
  'terminal.detached_secs': number(
    'Seconds without anybody attached after which a terminal is closed; 0 never closes one for that',
    1800,
    { minimum: 0, maximum: 2_592_000 },
    true,
  ),
  'terminal.max_secs': number(
    'Seconds after which a terminal is closed whatever happens; 0 never closes one for that',
    43_200,
    { minimum: 0, maximum: 31_536_000 },
    true,
  ),
  'terminal.agent_grace_secs': number(
    'Seconds that a terminal waits for its agent to come back',
    120,
    { minimum: 5, maximum: 86_400 },
    true,
  ),
  'terminal.transcript_max_bytes': number('Largest recording of one terminal', 256 * MEBIBYTE, {
    minimum: 65_536,
    maximum: 1024 * 1024 * MEBIBYTE,
  }),
  'terminal.disk_floor_bytes': number('Nothing is recorded while less than that is free on the disk', 1024 * MEBIBYTE, {
    minimum: 0,
    maximum: 1024 * 1024 * MEBIBYTE,
  }),
  'terminal.per_operator': number('Most terminals of one operator', 50, { minimum: 1, maximum: 10_000 }, true),
  'notifications.allow_networks': words(
    'Networks (CIDR) that channels may be in although they are not public; any port and plain HTTP too',
  ),
  'notifications.allow_http': flag('Send to channels without TLS, on port 80', false, true),
  metrics_token: { ...text('Bearer token with which GET /api/v1/metrics can be scraped without a login'), live: true },
  'metrics.poll_interval': number(
    'Seconds in which each connected agent is asked for measurements once',
    60,
    { minimum: 1, maximum: 86_400 },
    true,
  ),
  'metrics.retention': number('Seconds that measurements are kept', 86_400, { minimum: 60, maximum: 31_536_000 }, true),
  'audit.retention_days': number(
    'Days that audit events are kept, until an admin sets it with orch audit retention; 0 keeps them for ever',
    90,
    { minimum: 0, maximum: 36_500 },
    true,
  ),
  'log.level': {
    schema: Type.Enum(['debug', 'info', 'warn', 'error'], {
      default: 'info',
      description: 'Least level that is logged',
    }),
    live: true,
  },
  'log.format': {
    schema: Type.Enum(['auto', 'json', 'pretty'], {
      default: 'auto',
      description: 'json: a line of JSON each; pretty: for people; auto: pretty on a terminal, else json',
    }),
    live: false,
  },
  'limits.body_bytes': number('Largest request body of the API', 2 * MEBIBYTE, {
    minimum: 1024,
    maximum: 64 * MEBIBYTE,
  }),
  'limits.headers_timeout_secs': number('Time for the headers of a request', 10, { minimum: 1, maximum: 600 }),
  'limits.request_timeout_secs': number('Time for a whole request to arrive', 30, { minimum: 1, maximum: 3600 }),
  'limits.login_per_minute': number('Failed challenges and verifications a minute and address', 120, {
    minimum: 1,
    maximum: 100_000,
  }),
  'limits.failed_login_per_minute': number('Failed verifications a minute, address and key', 10, {
    minimum: 1,
    maximum: 100_000,
  }),
  'limits.pending_per_address': number('Most agents of one address that wait for approval', 10, {
    minimum: 1,
    maximum: 10_000,
  }),
  'limits.operations': number('Most operations in progress', 256, { minimum: 1, maximum: 100_000 }),
  'limits.dispatch_secs': number('How long an apply waits for its agent before it is not_delivered', 600, {
    minimum: 1,
    maximum: 86_400,
  }),
} as const satisfies Readonly<Record<string, { schema: Type.TSchema; live: boolean }>>;

export type SettingKey = keyof typeof SETTINGS;

/** The value of every setting. */
export type Settings = { readonly [K in SettingKey]: Type.Static<(typeof SETTINGS)[K]['schema']> };

export const SETTING_KEYS = Object.keys(SETTINGS) as readonly SettingKey[];

/** The name of a setting as a flag's key and, in capitals behind `ORCH_SERVE_`, as an environment variable. */
export const flatName = (key: SettingKey): string => key.replace('.', '_');
