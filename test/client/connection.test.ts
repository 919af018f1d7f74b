import { describe, expect, it } from 'vitest';
import { type Connection, type ConnectionFlags, resolveConnection } from '../../src/client/connection.js';
import type { Environment } from '../../src/client/operator-files.js';
import type { Profiles } from '../../src/client/profiles.js';
import { isLoopback, parseServerUrl, urlText } from '../../src/client/server-url.js';

const PIN = 'ab'.repeat(32);
const OTHER = 'cd'.repeat(32);
const none: Profiles = { path: '/home/u/.config/orch/config.yaml', standard: null, byName: {} };
const two: Profiles = {
  ...none,
  standard: 'home',
  byName: {
    home: { url: 'https://orch.home:4748', tls_fingerprint: PIN, key_file: '~/home.key', allow_unbound_login: true },
    work: { url: 'https://orch.work', ca: '~/ca.pem' },
  },
};

function resolve(
  flags: ConnectionFlags,
  env: Environment = {},
  profiles: Profiles = two,
): Connection & { address: string } {
  const connection = resolveConnection({ flags, env: { HOME: '/home/u', ...env }, profiles });
  return { ...connection, address: urlText(connection.url) };
}

describe('the connection', () => {
  it('without anything is to this machine, with the key at its usual place', () => {
    expect(resolve({}, {}, none)).toMatchObject({
      address: 'https://127.0.0.1:4748',
      profile: null,
      pin: null,
      ca: null,
      key: { kind: 'file', path: '/home/u/.config/orch/operator.key', from: 'the default' },
      token: null,
      allowUnboundLogin: false,
      allowPlainHttp: false,
    });
    expect(resolve({}, { XDG_CONFIG_HOME: '/cfg' }, none).key).toMatchObject({ path: '/cfg/orch/operator.key' });
    expect(resolve({}, { XDG_CONFIG_HOME: 'relative' }, none).key).toMatchObject({
      path: '/home/u/.config/orch/operator.key',
    });
  });

  it('takes the default profile, or the one that is named', () => {
    expect(resolve({})).toMatchObject({
      address: 'https://orch.home:4748',
      profile: 'home',
      pin: PIN,
      key: { path: '/home/u/home.key', from: 'profile home' },
      allowUnboundLogin: true,
    });
    const work = {
      address: 'https://orch.work',
      profile: 'work',
      pin: null,
      ca: '/home/u/ca.pem',
      allowUnboundLogin: false,
    };
    expect(resolve({ profile: 'work' })).toMatchObject(work);
    expect(resolve({}, { ORCH_PROFILE: 'work' })).toMatchObject(work);
    expect(resolve({ profile: 'home' }, { ORCH_PROFILE: 'work' }).profile).toBe('home');
    expect(resolve({}, { ORCH_PROFILE: '' }).profile).toBe('home');
  });

  it('lets a flag win over a variable, and a variable over the profile', () => {
    expect(resolve({ url: 'https://a' }, { ORCH_URL: 'https://b' }).address).toBe('https://a');
    expect(resolve({}, { ORCH_URL: 'https://b' }).address).toBe('https://b');
    expect(resolve({ keyFile: 'k' }, { ORCH_KEY_FILE: 'e', ORCH_KEY: 'pem' }).key).toMatchObject({
      path: 'k',
      from: '--key-file',
    });
    expect(resolve({}, { ORCH_KEY_FILE: 'e', ORCH_KEY: 'pem' }).key).toEqual({
      kind: 'pem',
      pem: 'pem',
      from: 'ORCH_KEY',
    });
    expect(resolve({}, { ORCH_KEY_FILE: 'e' }).key).toMatchObject({ path: 'e', from: 'ORCH_KEY_FILE' });
    expect(resolve({ tlsFingerprint: OTHER }).pin).toBe(OTHER);
    expect(resolve({ tlsFingerprint: `SHA256:${OTHER.toUpperCase().replace(/..(?=.)/g, '$&:')}` }).pin).toBe(OTHER);
    expect(resolve({}, { ORCH_TLS_FINGERPRINT: OTHER }).pin).toBe(OTHER);
    expect(resolve({}, { ORCH_TOKEN: 'orch_st_x' }).token).toBe('orch_st_x');
    expect(resolve({}, { ORCH_ALLOW_UNBOUND_LOGIN: 'no' }).allowUnboundLogin).toBe(false);
    expect(resolve({ allowUnboundLogin: true }, { ORCH_ALLOW_UNBOUND_LOGIN: '0' }).allowUnboundLogin).toBe(true);
    expect(resolve({}, { ORCH_ALLOW_PLAIN_HTTP: '1' }).allowPlainHttp).toBe(true);
  });

  it('does not mix the trust of two places', () => {
    expect(resolve({ ca: 'x.pem' })).toMatchObject({ pin: null, ca: 'x.pem' });
    expect(resolve({}, { ORCH_CA: 'x.pem' })).toMatchObject({ pin: null, ca: 'x.pem' });
    expect(resolve({ tlsFingerprint: OTHER }, { ORCH_CA: 'x.pem' })).toMatchObject({ pin: OTHER, ca: null });
    expect(resolve({ tlsFingerprint: OTHER, ca: 'x.pem' })).toMatchObject({ pin: OTHER, ca: 'x.pem' });
    expect(resolve({ tlsFingerprint: OTHER, profile: 'work' })).toMatchObject({ pin: OTHER, ca: null });
  });

  it('to another address keeps nothing of the default profile, but all of one that is named', () => {
    expect(resolve({ url: 'https://elsewhere' })).toMatchObject({
      profile: null,
      pin: null,
      key: { from: 'the default' },
      allowUnboundLogin: false,
    });
    expect(resolve({ url: 'https://orch.home:4748/' })).toMatchObject({ profile: 'home', pin: PIN });
    expect(resolve({ url: 'https://127.0.0.1:9999', profile: 'home' })).toMatchObject({
      address: 'https://127.0.0.1:9999',
      profile: 'home',
      pin: PIN,
    });
  });

  it.each<[string, ConnectionFlags, Environment, Profiles, string, RegExp]>([
    ['a bad address', { url: 'ftp://x' }, {}, none, 'usage', /^--url: "ftp:\/\/x" is neither https nor http/],
    ['a bad variable', {}, { ORCH_URL: 'https://' }, none, 'usage', /^ORCH_URL: /],
    ['a bad pin', { tlsFingerprint: 'xyz' }, {}, none, 'usage', /^--tls-fingerprint is not/],
    ['an unknown profile', { profile: 'x' }, {}, two, 'profile_not_found', /^--profile names the profile "x"/],
    ['an unknown profile by variable', {}, { ORCH_PROFILE: 'x' }, two, 'profile_not_found', /^ORCH_PROFILE names/],
    ['an unknown default', {}, {}, { ...none, standard: 'x' }, 'profile_not_found', /"default" in .*config\.yaml/],
    ['a switch that is none', {}, { ORCH_ALLOW_PLAIN_HTTP: 'maybe' }, none, 'usage', /neither true nor false/],
    [
      'a bad pin in a profile',
      {},
      {},
      { ...none, standard: 'p', byName: { p: { url: 'https://x', tls_fingerprint: 'no' } } },
      'invalid_config',
      /tls_fingerprint of profile p/,
    ],
    [
      'a bad address in a profile',
      {},
      {},
      { ...none, standard: 'p', byName: { p: { url: 'https://u:p@x' } } },
      'usage',
      /^profile p: /,
    ],
  ])('names what is wrong: %s', (_, flags, env, profiles, code, message) => {
    try {
      resolve(flags, env, profiles);
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    }
  });
});

describe('an address', () => {
  it.each([
    ['https://orch.example', 'https://orch.example'],
    ['https://orch.example:4748/', 'https://orch.example:4748'],
    ['https://orch.example/prefix//', 'https://orch.example/prefix'],
    ['HTTP://127.0.0.1:80', 'http://127.0.0.1'],
    ['orch.example', 'https://orch.example:4748'],
    ['orch.example:1234', 'https://orch.example:1234'],
    ['orch.example:443', 'https://orch.example'],
    ['[2001:db8::1]', 'https://[2001:db8::1]:4748'],
    [' 10.0.0.1 ', 'https://10.0.0.1:4748'],
  ])('%s is %s', (text, address) => {
    expect(urlText(parseServerUrl(text, '--url'))).toBe(address);
  });

  it.each([
    '',
    'https://',
    '--insecure',
    'https://-x',
    'ws://x',
    'https://a b',
    'https://x?y=1',
    'https://x#y',
    'https://u@x',
    'x:99999',
  ])('is refused when it is %j', (text) => {
    expect(() => parseServerUrl(text, '--url')).toThrow(expect.objectContaining({ code: 'usage' }));
  });

  it('is on this machine or not', () => {
    for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost', 'a.localhost'])
      expect(isLoopback(host), host).toBe(true);
    for (const host of ['128.0.0.1', '127.0.0.1.example', '127.example', '::2', 'localhost.example']) {
      expect(isLoopback(host), host).toBe(false);
    }
  });
});
