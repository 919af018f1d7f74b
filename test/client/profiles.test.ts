import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { profilesPath } from '../../src/client/operator-files.js';
import { loadProfiles, requireProfile, saveProfiles, withoutProfile, withProfile } from '../../src/client/profiles.js';
import { faultOf, temporaryDirectory } from '../support/client.js';

const inFile = (text: string): string => {
  const path = join(temporaryDirectory(), 'config.yaml');
  writeFileSync(path, text);
  return path;
};

describe('profiles', () => {
  it('are none when there is no file', async () => {
    const path = join(temporaryDirectory(), 'orch', 'config.yaml');
    expect(await loadProfiles(path)).toEqual({ path, standard: null, byName: {} });
    for (const text of ['', '# nothing yet\n', 'profiles:\n', '{}']) {
      expect((await loadProfiles(inFile(text))).byName).toEqual({});
    }
  });

  it('are read with everything that they may say', async () => {
    const path = inFile(`
default: home
profiles:
  home:
    url: https://orch.home:4748
    tls_fingerprint: "${'ab'.repeat(32)}"
    key_file: ~/keys/home.key
  work:
    url: https://orch.work
    ca: /etc/ca.pem
    allow_unbound_login: true
    allow_plain_http: false
`);
    expect(await loadProfiles(path)).toEqual({
      path,
      standard: 'home',
      byName: {
        home: { url: 'https://orch.home:4748', tls_fingerprint: 'ab'.repeat(32), key_file: '~/keys/home.key' },
        work: { url: 'https://orch.work', ca: '/etc/ca.pem', allow_unbound_login: true, allow_plain_http: false },
      },
    });
  });

  it('are refused with every mistake and its line', async () => {
    const path = inFile(`defualt: home
profiles:
  home:
    url: 5
    tls_fingerprnt: ab
  work:
    ca: x
  "bad name": {url: x}
  other: text
`);
    const fault = await faultOf(loadProfiles(path));
    expect(fault.code).toBe('invalid_config');
    expect(fault.errors).toEqual([
      { path: '/defualt', message: 'unknown key "defualt"', line: 1, column: 1 },
      { path: '/profiles/home/url', message: 'url has to be a string', line: 4, column: 5 },
      { path: '/profiles/home/tls_fingerprnt', message: 'unknown key "tls_fingerprnt"', line: 5, column: 5 },
      { path: '/profiles/work', message: 'profile work has no url', line: 6, column: 3 },
      { path: '/profiles/bad name', message: '"bad name" is no name for a profile', line: 8, column: 3 },
      { path: '/profiles/other', message: 'profile other has to be a mapping with at least a url', line: 9, column: 3 },
    ]);
    expect(fault.message).toContain(`${path}:5:5: unknown key "tls_fingerprnt"`);
  });

  it.each([
    ['profiles: [', /1:/],
    ['a: b: c', /1:/],
    ['profiles:\n  home: {url: x}\n  home: {url: y}\n', /3:3/],
    ['- a', /has to be a mapping/],
    ['text', /has to be a mapping/],
    ['profiles: 5', /profiles has to be a mapping/],
    ['default: [x]', /default has to be the name/],
  ])('are refused when the file is %j', async (text, message) => {
    const fault = await faultOf(loadProfiles(inFile(text)));
    expect(fault.code).toBe('invalid_config');
    expect(fault.message).toMatch(message);
  });

  it('that cannot be read or are far too many are refused', async () => {
    const directory = temporaryDirectory();
    expect((await faultOf(loadProfiles(directory))).code).toBe('invalid_config');
    expect((await faultOf(loadProfiles(inFile('#'.repeat(300_000))))).code).toBe('invalid_config');
  });

  it('are saved for their owner alone, and whole', async () => {
    const path = profilesPath({ HOME: temporaryDirectory() });
    const none = await loadProfiles(path);
    const one = withProfile(none, 'home', { url: 'https://orch.home', tls_fingerprint: 'ab' });
    await saveProfiles({ ...one, standard: 'home' });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
    const loaded = await loadProfiles(path);
    expect(loaded).toEqual({ ...one, standard: 'home' });
    await saveProfiles(withoutProfile(withProfile(loaded, 'work', { url: 'https://orch.work' }), 'home'));
    expect(await loadProfiles(path)).toEqual({ path, standard: null, byName: { work: { url: 'https://orch.work' } } });
    expect(readdirSync(join(path, '..'))).toEqual(['config.yaml']);
  });

  it('keep what people wrote beside them', async () => {
    const path = inFile(`# mine
default: home # the usual one
profiles:
  # at home
  home:
    url: https://orch.home # over the wire
    ca: /old.pem
  work: {url: https://orch.work}
`);
    chmodSync(path, 0o644);
    const profiles = await loadProfiles(path);
    await saveProfiles(withProfile(profiles, 'home', { url: 'https://orch.home', tls_fingerprint: 'ab' }));
    expect(readFileSync(path, 'utf8')).toBe(`# mine
default: home # the usual one
profiles:
  # at home
  home:
    url: https://orch.home # over the wire
    tls_fingerprint: ab
  work: { url: https://orch.work }
`);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('that cannot be saved leave no trace', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'config.yaml', 'below-a-file');
    writeFileSync(join(directory, 'config.yaml'), 'default: x\n');
    expect((await faultOf(saveProfiles({ path, standard: null, byName: {} }))).code).toBe('invalid_config');
    const taken = join(directory, 'taken');
    mkdirSync(taken);
    const fault = await faultOf(saveProfiles({ path: taken, standard: null, byName: {} }));
    expect(fault.code).toBe('invalid_config');
    expect(readdirSync(directory).sort()).toEqual(['config.yaml', 'taken']);
    expect(existsSync(join(taken, 'config.yaml'))).toBe(false);
  });

  it('have names that fit into a file name', () => {
    const none = { path: '/x', standard: null, byName: {} };
    for (const name of ['', '../x', 'a b', '-x', 'x'.repeat(65)]) {
      expect(() => withProfile(none, name, { url: 'https://x' })).toThrow(expect.objectContaining({ code: 'usage' }));
    }
    expect(() => requireProfile(none, 'constructor')).toThrow(expect.objectContaining({ code: 'profile_not_found' }));
    const one = withProfile(none, 'a', { url: 'https://x' });
    expect(() => requireProfile(one, 'b', '--profile')).toThrow(/--profile names the profile "b"/);
    expect(() => withoutProfile(one, 'b')).toThrow(expect.objectContaining({ hint: 'there are: a' }));
  });
});
