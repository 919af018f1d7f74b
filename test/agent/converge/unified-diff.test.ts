import { applyPatch } from 'diff';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unifiedDiff } from '../../../src/agent/converge/unified-diff.js';
import { MAX_DIFF_CHARACTERS } from '../../../src/resources/result.js';

const diff = (before: string | null, after: string | null, path = '/etc/motd') => unifiedDiff({ path, before, after });

describe('a unified diff', () => {
  it('shows a new file and one that goes', () => {
    expect(diff(null, 'a\nb\n')).toBe('--- /dev/null\n+++ b/etc/motd\n@@ -0,0 +1,2 @@\n+a\n+b\n');
    expect(diff('a', null)).toBe('--- a/etc/motd\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n\\ No newline at end of file\n');
    expect(diff('', 'a')).toContain('--- a/etc/motd\n+++ b/etc/motd\n@@ -0,0 +1,1 @@\n+a\n\\ No newline');
  });

  it('is nothing when nothing differs', () => {
    expect([diff('a', 'a'), diff(null, ''), diff('', null), diff(null, null)]).toEqual([null, null, null, null]);
  });

  it('shows three lines around a change', () => {
    const lines = Array.from({ length: 20 }, (_, index) => `${index}`);
    const after = lines.with(10, 'ten').join('\n');
    expect(diff(`${lines.join('\n')}\n`, `${after}\n`)).toBe(
      '--- a/etc/motd\n+++ b/etc/motd\n@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n',
    );
  });

  it('has no control character in its header', () => {
    expect(diff(null, 'x', '/a\n+++ b\u001b[2J')?.split('\n')[1]).toBe('+++ b/a\\n+++ b\\u001b[2J');
  });

  it('gives up on texts that have little in common, and shows one replaced by the other', () => {
    const text = (word: string) => `${Array.from({ length: 3_000 }, (_, index) => `${word}${index}`).join('\n')}\n`;
    const shown = diff(text('a'), text('b')) ?? '';
    expect(shown.startsWith('--- a/etc/motd\n+++ b/etc/motd\n@@ -1,3000 +1,3000 @@\n-a0\n-a1\n')).toBe(true);
    expect(shown).toContain('-a2999\n+b0\n');
  });

  it('is cut at the end of a line, with a last line that says so', () => {
    const shown = diff(null, 'x'.repeat(99).concat('\n').repeat(10_000)) ?? '';
    expect(shown.length).toBeLessThanOrEqual(MAX_DIFF_CHARACTERS);
    expect(shown.length).toBeGreaterThan(MAX_DIFF_CHARACTERS - 300);
    expect(shown).toMatch(/\n\+x{99}\n… \d+ more characters are not shown\n$/);
  });

  it('is cut within a line that is too long, and by its length in JSON', () => {
    for (const text of [
      'x'.repeat(500_000),
      '\u0001'.repeat(500_000),
      '🐟'.repeat(200_000),
      '\u0001\n'.repeat(300_000),
    ]) {
      const shown = diff(null, text) ?? '';
      expect(shown.length).toBeLessThanOrEqual(MAX_DIFF_CHARACTERS);
      expect(JSON.stringify(shown).length).toBeLessThanOrEqual(2 * MAX_DIFF_CHARACTERS);
      expect(shown).toMatch(/more characters are not shown\n$/);
      expect(shown).not.toMatch(/\p{Surrogate}/u);
    }
  });

  it('makes of one text the other', () => {
    const line = fc.constantFrom('a', 'b', 'c', '', ' ', '-', '+', '@@', '\r', '\\ No newline at end of file');
    const text = fc.tuple(fc.array(line, { maxLength: 30 }), fc.boolean());
    const join = ([lines, isEnded]: [string[], boolean]) => lines.join('\n') + (isEnded ? '\n' : '');
    fc.assert(
      fc.property(text, text, (one, other) => {
        const [before, after] = [join(one), join(other)];
        const patch = diff(before, after);
        if (patch === null) expect(before).toBe(after);
        else expect(applyPatch(before, patch, { autoConvertLineEndings: false })).toBe(after);
      }),
      { numRuns: 500 },
    );
  });
});
