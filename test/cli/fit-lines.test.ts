/** Lines that are wrapped between words. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { styled } from '../../src/cli/outcome.js';
import { wrapAtWords } from '../../src/cli/render/fit-lines.js';
import { plainText } from '../../src/cli/render/paint.js';
import { widthOf } from '../../src/cli/render/terminal-text.js';

const wrapped = (...[line, columns, hang, first]: Parameters<typeof wrapAtWords>): readonly string[] =>
  wrapAtWords(line, columns, hang, first).map(plainText);

describe('a sentence', () => {
  it('is broken between words, and its rest is indented', () => {
    expect(wrapped('no agent matches the selector, so nothing is applied', 30, 2)).toEqual([
      'no agent matches the selector,',
      '  so nothing is applied',
    ]);
  });

  it('that is indented hangs by more than its own indentation', () => {
    expect(wrapped('  no agent matches the selector, so nothing is applied', 32, 2)).toEqual([
      '  no agent matches the selector,',
      '    so nothing is applied',
    ]);
  });

  it('keeps a long word whole', () => {
    const key = 'ab'.repeat(32);
    expect(wrapped(`the key ${key} is unknown`, 40, 2)).toEqual(['the key', `  ${key}`, '  is unknown']);
  });

  it('keeps a command of orch whole where a line has room for it', () => {
    expect(wrapped('see what there is: orch agents list --status approved', 40, 2)).toEqual([
      'see what there is:',
      '  orch agents list --status approved',
    ]);
    expect(wrapped('try again: orch rollouts retry 01  3 agents did not succeed', 36, 2)).toEqual([
      'try again: orch rollouts retry 01  3',
      '  agents did not succeed',
    ]);
  });

  it('keeps a label with the word behind it', () => {
    const line = [styled('dim', 'Public key'), '  ', 'a'.repeat(40), ' and more'];
    expect(wrapped(line, 40, 12, 12)).toEqual([`Public key  ${'a'.repeat(40)}`, '            and more']);
  });

  it('keeps its styles', () => {
    expect(wrapAtWords([styled('bad', 'orch: '), 'there is no module of that name'], 28, 2)).toEqual([
      [styled('bad', 'orch: '), 'there is no module of'],
      ['  ', 'that name'],
    ]);
  });
});

describe('any line', () => {
  const line = fc.array(fc.string({ unit: 'grapheme', maxLength: 30 }), { maxLength: 20 }).map((all) => all.join(' '));

  it('loses no word, and is longer than the terminal only by a word', () => {
    fc.assert(
      fc.property(line, fc.integer({ min: 1, max: 100 }), fc.integer({ min: 0, max: 30 }), (text, columns, hang) => {
        const lines = wrapped(text, columns, hang);
        const [whole = ''] = wrapped(text, Number.MAX_SAFE_INTEGER, hang);
        const words = (all: string) => all.split(/\s+/).filter((word) => word !== '');
        expect(words(lines.join(' '))).toEqual(words(whole));
        for (const one of lines) if (widthOf(one) > columns) expect(words(one).length).toBeLessThanOrEqual(1);
      }),
    );
  });
});
