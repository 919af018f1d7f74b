import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gapScrubber, scrubber } from '../../src/kernel/tainted.js';

const FORMS: readonly (readonly [string, (value: string) => string])[] = [
  ['as it is', (value) => value],
  ['in base64', (value) => Buffer.from(value).toString('base64')],
  ['in base64 for URLs', (value) => Buffer.from(value).toString('base64url')],
  ['URL-encoded', (value) => encodeURIComponent(value)],
  ['URL-encoded in small letters', (value) => encodeURIComponent(value).replace(/%../g, (byte) => byte.toLowerCase())],
  ['as in a JSON string', (value) => JSON.stringify(value)],
];
const secret = fc.string({ unit: 'binary', minLength: 6, maxLength: 40 });

describe('the net under the masking', () => {
  it.each(FORMS)('takes out every value %s', (_, form) => {
    fc.assert(
      fc.property(secret, fc.string(), (value, around) => {
        const text = `${around}\n${form(value)}|${form(value)}\n`;
        const scrubbed = scrubber([{ value, shown: '‹masked›' }])(text);
        expect(scrubbed).toContain('‹masked›');
        expect(scrubbed.slice(around.length)).not.toContain(form(value).replace(/=+$/, ''));
      }),
    );
  });

  it('leaves the rest of a text and short values alone', () => {
    const scrub = scrubber([
      { value: 'admin', shown: '‹short›' },
      { value: 'hunter22\n', shown: '‹long›' },
    ]);
    expect(scrub('admin logs in with hunter22, not hunter2\n')).toBe('admin logs in with ‹long›, not hunter2\n');
  });

  it('takes out the long lines of a value of several lines, where one of them is shown alone', () => {
    const value = 'BEGIN KEY\nMC4CAQAwBQYDK2VwBCIEIHcC\nend\n';
    const scrub = scrubber([{ value, shown: '‹key›' }]);
    expect(scrub('line 2: MC4CAQAwBQYDK2VwBCIEIHcC\nend of it')).toBe('line 2: ‹key›\nend of it');
  });

  it('takes out base64 that is broken into lines, and that of a value within a longer text', () => {
    const value =
      'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxSecret value / of a hundred characters and more, for a program that breaks lines';
    const scrub = scrubber([{ value, shown: '‹v›' }]);
    const lines = (text: string, length: number) => text.match(new RegExp(`.{1,${length}}`, 'g'))?.join('\n');
    const base64 = Buffer.from(value).toString('base64');
    for (const length of [64, 76]) expect(scrub(`a\n${lines(base64, length)}\nb`)).not.toContain(base64.slice(10, 40));
    for (const before of ['u:', 'user:', 'somebody:']) {
      const shown = scrub(Buffer.from(`${before}${value}@host`).toString('base64'));
      expect(shown).toContain('‹v›');
      expect(Buffer.from(shown.split('‹v›')[0] ?? '', 'base64').toString()).not.toContain('xxx');
    }
  });

  it('takes out what a cut has left of a value on both sides of the gap', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[\w+/.-]{6,60}$/), fc.nat(), fc.string(), (value, at, around) => {
        const cut = at % value.length;
        const [before, behind] = gapScrubber([{ value, shown: '‹v›' }])(
          around + value.slice(0, cut),
          value.slice(cut) + around,
        );
        if (cut >= 4) expect(before.endsWith('‹v›')).toBe(true);
        if (value.length - cut >= 4) expect(behind.startsWith('‹v›')).toBe(true);
      }),
    );
  });

  it('takes the longer of two values that contain each other', () => {
    const scrub = scrubber([
      { value: 'secret', shown: '‹a›' },
      { value: 'secret-and-more', shown: '‹b›' },
    ]);
    expect(scrub('secret-and-more, secret')).toBe('‹b›, ‹a›');
  });

  it('does not take a value for a pattern of replacement', () => {
    expect(scrubber([{ value: '$&$&$&', shown: "$'" }])('a $&$&$& b')).toBe("a $' b");
  });
});
