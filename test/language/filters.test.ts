/** Filters of expressions: whatever the values are, the result is what the filter says, or one clear problem. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseText } from '../../src/language/expression.js';
import { type FillContext, fillText } from '../../src/language/filling.js';
import { OPEN } from '../../src/language/parse-expression.js';
import { Work } from '../../src/language/work.js';

/** The text that an expression gives for tags, and the problems. */
function filled(source: string, tags: Readonly<Record<string, string>>) {
  const { parts, problems: mistakes } = parseText(`${OPEN} ${source} }}`);
  expect(mistakes).toEqual([]);
  const filling: FillContext = {
    agent: { node_id: 'id', name: 'name', attributes: {}, tags },
    secret: () => {
      throw new Error('no filter asks for a secret');
    },
    problems: [],
    taint: new Map(),
    each: null,
    work: new Work(),
    inputs: {},
    shared: {},
    room: { left: 1e7 },
  };
  const { text } = fillText(parts, filling, '/content');
  return { text, problems: filling.problems.map(({ message }) => message) };
}

const value = (source: string, a: string): string => {
  const { text, problems } = filled(source, { a });
  expect(problems).toEqual([]);
  return text;
};

describe('any text', () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), fc.constantFrom(`${OPEN} tags.b }}`, "'", '"'));

  it('comes back from what quotes it', () => {
    fc.assert(
      fc.property(text, (a) => {
        expect(JSON.parse(value('tags.a | to_json', a))).toBe(a);
        expect(value('tags.a | shell_quote', a).slice(1, -1).replaceAll("'\\''", "'")).toBe(a);
        expect(value('tags.a | split: "," | join: ","', a)).toBe(a);
        expect(value('tags.a | append: "x" | prepend: "y"', a)).toBe(`y${a}x`);
        expect(value('tags.a | default: "x"', a)).toBe(a);
        expect(filled('tags.none | upcase | default: tags.a', { a })).toEqual({ text: a, problems: [] });
      }),
    );
  });

  it('is spread to the same number each time', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 1_000_000 }), (a, count) => {
        const number = value(`tags.a | spread: ${count}`, a);
        expect(number).toMatch(/^\d+$/);
        expect(Number(number)).toBeLessThan(count);
        expect(value(`tags.a | spread: ${count}`, a)).toBe(number);
      }),
    );
  });
});

it('spreads the names of a fleet over every minute, none with twice its share', () => {
  const minutes = new Map<string, number>();
  for (let index = 0; index < 6_000; index += 1) {
    const minute = value('tags.a | spread: 60', `web-${index}`);
    minutes.set(minute, (minutes.get(minute) ?? 0) + 1);
  }
  expect(minutes.size).toBe(60);
  expect(Math.max(...minutes.values())).toBeLessThan(200);
});

it('gives the same numbers in every version, because the minutes of a fleet depend on them', () => {
  const numbers = ['', 'web-01', 'ä', '\u{1f600}'].map((a) => value('tags.a | spread: 1000000', a));
  expect(numbers).toEqual(['998923', '463490', '739704', '143206']);
});

describe('filters that multiply a text', () => {
  it.each([
    ['replace', `tags.a${' | replace: "a", "aaaaaaaaaaaaaaaa"'.repeat(16)}`],
    ['append', `tags.a${' | append: tags.a | replace: "a", "aaaa"'.repeat(8)}`],
    ['join', `tags.a | replace: "a", "a,a,a,a,a,a,a,a" | split: "," | join: tags.a | split: "a" | join: tags.a`],
    ['indent', 'tags.b | indent: 1000000'],
    ['to_json', `tags.c${' | to_json'.repeat(16)}`],
  ])('end at their bound: %s', (_, source) => {
    const tags = { a: 'a'.repeat(256), b: 'b\n'.repeat(128), c: '"'.repeat(16) };
    expect(filled(source, tags)).toEqual({
      text: '',
      problems: ['content: a filter gives more than 65536 characters'],
    });
  });
});
