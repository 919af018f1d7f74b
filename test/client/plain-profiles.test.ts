/** The quick reading of profiles against the library's, which it may never contradict. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ProfilesFile, readPlainProfiles } from '../../src/client/profile-file.js';
import { editProfiles, parseProfiles } from '../../src/client/profiles-yaml.js';

const PIN = '24aa5312615c0ee032700b2a9e1f88750e92791209fe32355bf92996ed3fe9e9';
const bench = { url: 'https://127.0.0.1:36683', tls_fingerprint: PIN };

describe('profiles as orch writes them', () => {
  it.each<ProfilesFile>([
    { default: 'bench', profiles: { bench } },
    { profiles: { bench, other: { url: 'https://orch.example.com', ca: '~/ca.pem', allow_unbound_login: true } } },
    { default: 'a', profiles: { a: { url: 'https://a', key_file: '/etc/orch/a_key.pem', allow_plain_http: false } } },
  ])('are read without the library: %j', (file) => {
    const source = editProfiles('', file);
    expect(readPlainProfiles(source)).toEqual(file);
    expect(parseProfiles(source, 'config.yaml')).toEqual(file);
  });
});

describe('anything else', () => {
  it.each([
    ['a comment', `# mine\ndefault: bench\nprofiles:\n  bench:\n    url: https://a\n`],
    ['a comment behind a value', 'profiles:\n  a:\n    url: https://a # mine\n'],
    ['quotes', 'profiles:\n  a:\n    url: "https://a"\n'],
    ['flow', 'profiles: {a: {url: "https://a"}}\n'],
    ['an anchor', 'profiles:\n  a: &a\n    url: https://a\n'],
    ['a text of several lines', 'profiles:\n  a:\n    url: https://a\n      b\n'],
    ['a number', 'profiles:\n  a:\n    url: 12\n'],
    ['digits that are a number', `profiles:\n  a:\n    url: https://a\n    tls_fingerprint: ${'1'.repeat(64)}\n`],
    ['digits with an exponent', `profiles:\n  a:\n    url: https://a\n    tls_fingerprint: 12e${'4'.repeat(61)}\n`],
    ['nothing', 'profiles:\n  a:\n    url: null\n'],
    ['a name that is no text', 'profiles:\n  true:\n    url: https://a\n'],
    ['a key twice', 'profiles:\n  a:\n    url: https://a\n    url: https://b\n'],
    ['a profile twice', 'profiles:\n  a:\n    url: https://a\n  a:\n    url: https://b\n'],
    ['an unknown key', 'profiles:\n  a:\n    url: https://a\n    tls: x\n'],
    ['no address', 'profiles:\n  a:\n    ca: /x\n'],
    ['a profile without anything', 'profiles:\n  a:\n'],
    ['another indentation', 'profiles:\n    a:\n        url: https://a\n'],
    ['two documents', 'default: a\n---\nprofiles:\n'],
    ['a tab', 'profiles:\n  a:\n    url:\thttps://a\n'],
    ['line ends of Windows', 'profiles:\r\n  a:\r\n    url: https://a\r\n'],
    ['a profile behind another key', 'profiles:\n  a:\n    url: https://a\ndefault: a\n  b:\n    url: https://b\n'],
  ])('is left to the library: %s', (_, source) => {
    expect(readPlainProfiles(source)).toBeNull();
  });

  it('is never read as something else than the library does', () => {
    const word = fc.constantFrom(
      'a',
      'b',
      'default',
      'profiles',
      'url',
      'ca',
      'allow_plain_http',
      'true',
      'null',
      '1e3',
      'x:y',
      '~',
      '0x1f',
      '-',
      '.5',
      'é',
    );
    const line = fc
      .tuple(
        fc.constantFrom('', '  ', '    ', '   '),
        word,
        fc.constantFrom(':', ': ', ' :'),
        fc.oneof(word, fc.constant(''), fc.string()),
      )
      .map((parts) => parts.join(''));
    const plain = fc.constantFrom('profiles:', '  a:', '  b:', '    url: https://a', '    ca: /x', 'default: a');
    const text = fc.array(fc.oneof({ weight: 3, arbitrary: plain }, { weight: 1, arbitrary: line }), { maxLength: 8 });
    let read = 0;
    fc.assert(
      fc.property(text, (lines) => {
        const source = `${lines.join('\n')}\n`;
        const found = readPlainProfiles(source);
        if (found === null) return;
        read += 1;
        expect(found).toEqual(parseProfiles(source, 'config.yaml'));
      }),
      { numRuns: 5_000 },
    );
    expect(read).toBeGreaterThan(10);
  });
});
