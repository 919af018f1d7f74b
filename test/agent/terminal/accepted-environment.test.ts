/** Which variables of an operator a program gets, whatever is sent. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { acceptedEnvironment, normalLocale } from '../../../src/agent/terminal/login.js';
import { sentEnvironment } from '../../../src/kernel/schema.js';

const STANDARD = ['LANG', 'LC_*', 'COLORTERM'];
const locales = async () => new Set(['C', 'C.UTF-8', 'de_DE.utf8', 'de_DE@euro', 'POSIX'].map(normalLocale));
const accepted = (sent: readonly string[], names: readonly string[] = STANDARD) =>
  acceptedEnvironment(sent, names, locales);

describe('the variables of an operator', () => {
  it.each([
    ['LANG=de_DE.UTF-8', true],
    ['LC_TIME=de_DE.utf8', true],
    ['LC_MONETARY=de_DE@euro', true],
    ['LC_ALL=C.UTF-8', true],
    ['COLORTERM=truecolor', true],
    ['LANG=tlh_KL.UTF-8', false],
    ['LC_ALL=../../tmp/evil', false],
    ['LC_CTYPE=/tmp/evil', false],
    ['LANGUAGE=de', false],
    ['EDITOR=vi', false],
    ['PATH=/tmp', false],
    ['LD_PRELOAD=/tmp/evil.so', false],
    ['ORCH_OPERATOR=root', false],
  ])('%s is accepted: %j', async (entry, isAccepted) => {
    expect(await accepted([entry])).toEqual(isAccepted ? [entry] : []);
  });

  it('are those that the machine names, and never those that decide which code runs', async () => {
    const names = ['EDITOR', 'GIT_*', 'L*', 'P*', 'B*', 'E*', 'I*', 'N*', 'O*', 'S*', 'H*', 'T*', 'D*'];
    expect(await accepted(['EDITOR=vi', 'GIT_AUTHOR_NAME=Ada', 'COLORTERM=truecolor'], names)).toEqual([
      'EDITOR=vi',
      'GIT_AUTHOR_NAME=Ada',
    ]);
    const dangerous = ['LD_PRELOAD', 'LD_LIBRARY_PATH', 'PATH', 'BASH_ENV', 'ENV', 'IFS', 'NODE_OPTIONS', 'PYTHONPATH'];
    const login = ['HOME', 'SHELL', 'TERM', 'ORCH_SESSION', 'SHELLOPTS', 'DYLD_INSERT_LIBRARIES', 'PERL5LIB'];
    expect(
      await accepted(
        [...dangerous, ...login].map((name) => `${name}=x`),
        names,
      ),
    ).toEqual([]);
  });

  it('include any locale where the machine cannot be asked for its own', async () => {
    const sent = ['LANG=de_DE.UTF-8', 'LC_ALL=/tmp/evil'];
    expect(await acceptedEnvironment(sent, STANDARD, async () => null)).toEqual(['LANG=de_DE.UTF-8']);
  });

  it('are sent by name, without control characters and within bounds', () => {
    const env = {
      LANG: 'de_DE.UTF-8',
      LC_TIME: 'C',
      COLORTERM: 'truecolor',
      PATH: '/bin',
      LC_ALL: '',
      LD_PRELOAD: 'x',
    };
    expect(sentEnvironment(env)).toEqual(['LANG=de_DE.UTF-8', 'LC_TIME=C', 'COLORTERM=truecolor']);
    expect(sentEnvironment({ LANG: 'a\nPATH=b', LC_TIME: '\x9bx', COLORTERM: 'x'.repeat(2_000) })).toEqual([]);
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        for (const entry of sentEnvironment({ LANG: value })) expect(entry).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});
