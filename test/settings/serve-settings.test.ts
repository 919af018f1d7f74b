/** The settings of `orch serve`: where they come from, and what is refused. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { driftSchedule } from '../../daemon/engine/drift/drift-scheduler.js';
import { engineLimits } from '../../daemon/engine/engine-limits.js';
import { metricsSchedule } from '../../daemon/metrics/metrics-poller.js';
import { terminalRules } from '../../daemon/terminal/live-sessions.js';
import type { Fault } from '../../src/kernel/fault.js';
import { loadSettings, type RawFlags } from '../../src/settings/load-serve.js';

const directory = mkdtempSync(join(tmpdir(), 'orch-config-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let files = 0;
const fileOf = (text: string): string => {
  files += 1;
  const path = join(directory, `${files}.yaml`);
  writeFileSync(path, text);
  return path;
};

const load = (file: string, flags: RawFlags = {}, env: Record<string, string> = {}) =>
  loadSettings({ flags, env, configFile: fileOf(file), isRoot: false });

/** The fault that loading ends with. */
function refused(file: string, flags: RawFlags = {}, env: Record<string, string> = {}): Fault {
  try {
    load(file, flags, env);
  } catch (error) {
    return error as Fault;
  }
  throw new Error('nothing was refused');
}

describe('settings', () => {
  it('come from the flag, then the variable, then the file, then the default', () => {
    const file = 'api_port: 1000\nlog:\n  level: warn\n';
    expect(load('')).toMatchObject({ api_port: 4748, agent_port: 4747, 'log.level': 'info', api_host: '127.0.0.1' });
    expect(load(file)).toMatchObject({ api_port: 1000, 'log.level': 'warn' });
    const env = { ORCH_SERVE_API_PORT: '2000', ORCH_SERVE_LOG_LEVEL: 'error' };
    expect(load(file, {}, env)).toMatchObject({ api_port: 2000, 'log.level': 'error' });
    expect(load(file, { api_port: '3000', log_level: 'debug' }, env)).toMatchObject({
      api_port: 3000,
      'log.level': 'debug',
    });
  });

  it('reach the rooms in milliseconds where the configuration counts seconds', () => {
    const settings = load(
      [
        'drift: {interval: 601, skip_recently_applied: 602}',
        'limits: {dispatch_secs: 63}',
        'metrics: {poll_interval: 64, retention: 65}',
        'terminal: {idle_secs: 606, detached_secs: 607, max_secs: 608, agent_grace_secs: 69}',
      ].join('\n'),
    );
    expect(driftSchedule(settings)).toMatchObject({ interval: 601_000, skipRecentlyApplied: 602_000 });
    expect(engineLimits(settings).dispatch).toBe(63_000);
    expect(metricsSchedule(settings)).toEqual({ interval: 64_000, retention: 65_000 });
    const times = { idle: 606_000, detached: 607_000, max: 608_000, agentGrace: 69_000 };
    expect(terminalRules(settings)).toMatchObject(times);
  });

  it('put the data below the state directory of an ordinary user', () => {
    expect(load('', {}, { XDG_STATE_HOME: '/somewhere' }).data_dir).toBe('/somewhere/orch/serve');
    expect(loadSettings({ flags: {}, env: {}, configFile: fileOf(''), isRoot: true }).data_dir).toBe('/var/lib/orch');
  });

  it('take booleans as people write them', () => {
    expect(load('tls_enabled: false\n').tls_enabled).toBe(false);
    expect(load('', {}, { ORCH_SERVE_TLS_ENABLED: '0' }).tls_enabled).toBe(false);
    expect(load('', { tls_enabled: false }).tls_enabled).toBe(false);
  });

  it('take lists as words between commas, and in a file as lists too', () => {
    const networks = (file: string, flags: RawFlags = {}, env: Record<string, string> = {}) =>
      load(file, flags, env)['notifications.allow_networks'];
    expect(networks('')).toEqual([]);
    expect(networks('notifications:\n  allow_networks: [10.0.0.0/8, fd00::/8]\n')).toEqual(['10.0.0.0/8', 'fd00::/8']);
    expect(networks('notifications: {allow_networks: "10.0.0.0/8, 192.168.0.0/16"}\n')).toEqual([
      '10.0.0.0/8',
      '192.168.0.0/16',
    ]);
    expect(networks('', {}, { ORCH_SERVE_NOTIFICATIONS_ALLOW_NETWORKS: '127.0.0.1/32' })).toEqual(['127.0.0.1/32']);
    expect(networks('', { notifications_allow_networks: '' })).toEqual([]);
    expect(refused('notifications: {allow_networks: [10.0.0.0/8, home]}\n')).toMatchObject({
      code: 'invalid_config',
      message: 'notifications.allow_networks: "home" is no network',
    });
    expect(refused('notifications: {allow_networks: [1, {a: 2}]}\n')).toMatchObject({ code: 'invalid_config' });
  });

  it('in a file are refused all at once, each with its line', () => {
    const { code, message, errors } = refused('api_prot: 1\napi_port: 70000\nlog:\n  level: loud\n  colour: red\n');
    expect(code).toBe('invalid_config');
    expect(errors?.map(({ line, column, path }) => [line, column, path])).toEqual([
      [1, 1, '/api_prot'],
      [2, 1, '/api_port'],
      [4, 3, '/log/level'],
      [5, 3, '/log/colour'],
    ]);
    expect(message).toContain('yaml:1:1: unknown key "api_prot"');
  });

  it('in a file that is no YAML, no mapping or not there are refused with its name', () => {
    expect(refused('api_port: [1\n').message).toMatch(/yaml:\d+:\d+/);
    expect(refused('- api_port\n').message).toContain('must hold a mapping');
    const missing = () => loadSettings({ flags: {}, env: {}, configFile: join(directory, 'none.yaml'), isRoot: false });
    expect(missing).toThrow(/cannot read the configuration file .*none\.yaml/);
  });

  it('that are no settings are refused in the environment too', () => {
    expect(refused('', {}, { ORCH_SERVE_API_PROT: '1' })).toMatchObject({
      code: 'invalid_config',
      message: 'unknown environment variable ORCH_SERVE_API_PROT',
    });
  });

  it('name the flag or variable that has a bad value', () => {
    expect(refused('', { api_port: 'abc' })).toMatchObject({
      code: 'usage',
      message: expect.stringMatching(/^--api-port: /),
    });
    expect(refused('', {}, { ORCH_SERVE_API_PORT: '-1' })).toMatchObject({
      code: 'invalid_config',
      message: expect.stringMatching(/^ORCH_SERVE_API_PORT: /),
    });
  });

  it('that contradict each other are refused', () => {
    expect(refused('tls_enabled: false\napi_host: 0.0.0.0\n').message).toContain('only listen on loopback');
    expect(refused('tls_enabled: false\napi_host: 127.example.com\n').message).toContain('only listen on loopback');
    expect(load('tls_enabled: false\napi_host: 127.1.2.3\n').api_host).toBe('127.1.2.3');
    expect(load('tls_enabled: false\napi_host: 0.0.0.0\ntrust_proxy_tls: true\n').trust_proxy_tls).toBe(true);
    expect(refused('tls_cert: /etc/hostname\n').message).toContain('go together');
    expect(refused('tls_cert: /none\ntls_key: /none\n').message).toContain('/none');
    expect(refused('api_spki: abc\n').message).toContain('64 hex digits');
    expect(refused('bootstrap_username: alice\n').message).toContain('bootstrap_key');
  });
});

describe('the advertised host', () => {
  it.each([
    'orch.example.org',
    'bücher.example',
    'UPPER.Example.',
    'under_score.lan',
    '10.0.0.1',
    '::1',
    'fe80::1%eth0',
    `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`,
  ])('may be %j', (host) => {
    expect(load('', { advertised_host: host }).advertised_host).toBe(host);
  });

  it('loses the brackets of an IPv6 address', () => {
    expect(load('', { advertised_host: '[::1]' }).advertised_host).toBe('::1');
  });

  it.each([
    ['10.0.0.1:4747', 'has a port'],
    ['orch.example.org:4747', 'has a port'],
    ['[::1]:4747', 'has a port'],
    ['https://orch.example.org', 'is a URL'],
    ['host name', 'is neither a host name nor an IP address'],
    ['-host', 'is neither'],
    ['a..b', 'is neither'],
    ['host/path', 'is neither'],
    ['10.0.0', 'is no complete IPv4 address'],
    ['10.0.0.300', 'is neither'],
    [`${'a'.repeat(64)}.example`, 'is neither'],
    [`${'ä'.repeat(60)}.example`, 'is too long'],
    [`${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}`, 'is too long'],
  ])('is not %j', (host, why) => {
    const fault = refused(`advertised_host: ${JSON.stringify(host)}`);
    expect(fault).toMatchObject({ code: 'invalid_config', message: expect.stringContaining(why) });
    expect(fault.message).toContain(`advertised_host: ${JSON.stringify(host)}`);
  });
});

describe('the token of metrics', () => {
  const tokenFile = (text: string, mode = 0o600): string => {
    const path = fileOf(text);
    chmodSync(path, mode);
    return path;
  };

  it('comes from a file, and is read again with the settings', () => {
    const file = tokenFile('first\n');
    const yaml = `metrics_token_file: ${file}`;
    expect(load(yaml).metrics_token).toBe('first');
    writeFileSync(file, 'second');
    expect(load(yaml).metrics_token).toBe('second');
  });

  it.each<[string, () => string, RegExp]>([
    ['that others may read', () => tokenFile('token', 0o644), /may be read by others/],
    ['that is empty', () => tokenFile('\n'), /holds no token/],
    ['of several lines', () => tokenFile('one\ntwo\n'), /holds no token/],
    ['that is not there', () => join(directory, 'none'), /cannot be read/],
  ])('is not in a file %s', (_, file, why) => {
    const fault = refused(`metrics_token_file: ${file()}`);
    expect([fault.code, fault.message]).toEqual(['invalid_config', expect.stringMatching(why)]);
    expect(fault.hint).toBeDefined();
  });

  it('is given once', () => {
    expect(refused(`metrics_token: a\nmetrics_token_file: ${tokenFile('b')}`).message).toContain('exclude each other');
  });
});
