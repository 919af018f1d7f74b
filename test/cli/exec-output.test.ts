/** The output of `orch exec`, wherever it is cut. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InOrder } from '../../src/cli/exec/exec-agents.js';
import { HarmlessOutput } from '../../src/cli/exec/harmless-output.js';
import { LineSplitter } from '../../src/cli/exec/sinks.js';
import { isHostile } from '../../src/cli/render/terminal-text.js';
import { drawn } from '../support/exhaustive.js';

const parts = fc.constantFrom(
  ...['text', 'ü', '😀', '\n', '\r', '\r\n', '\t', '\b', '\x07', '\x00', '\x9b', '\u202e', ' '],
  ...[
    '\x1b',
    '[',
    ']',
    'm',
    '31',
    ';',
    '0',
    'J',
    '\\',
    'P',
    '(',
    'B',
    '\x1b[31m',
    '\x1b[2J',
    '\x1b]52;c;x\x07',
    '\x1b[?25l',
  ],
);
const texts = fc.array(parts, { maxLength: 40 }).map((all) => Buffer.from(all.join('')));
const cuts = fc.array(fc.nat({ max: 200 }), { maxLength: 6 });

/** The same bytes in pieces. */
const pieces = (bytes: Buffer, at: readonly number[]): readonly Buffer[] => {
  const places = [0, ...[...at].sort((a, b) => a - b), bytes.length].map((place) => Math.min(place, bytes.length));
  return places.slice(1).map((place, index) => bytes.subarray(places[index], place));
};

const harmless = (all: readonly Buffer[], options: { readonly color: boolean; readonly lines: boolean }): string => {
  const filter = new HarmlessOutput(options);
  return all.map((bytes) => filter.push(bytes)).join('') + filter.end();
};

describe('output on a terminal', () => {
  it.each([
    { color: true, lines: false },
    { color: true, lines: true },
    { color: false, lines: true },
  ])('%j: nothing steers it but colours, wherever it is cut', (options) => {
    fc.assert(
      fc.property(texts, cuts, (bytes, at) => {
        const shown = harmless(pieces(bytes, at), options);
        expect(shown).toBe(harmless([bytes], options));
        const allowed = options.lines ? ['\t'] : ['\t', '\r', '\b'];
        const plain = options.color ? shown.replaceAll(/\x1b\[[0-9;:]*m/g, '') : shown;
        expect(isHostile(allowed.reduce((text, one) => text.replaceAll(one, ''), plain))).toBe(false);
      }),
      { numRuns: drawn(1_000) },
    );
  });

  it('goes on after a sequence that never ends', () => {
    const text = `\x1b]0;${'x'.repeat(10_000)}\nafter`;
    expect(harmless([Buffer.from(text)], { color: true, lines: false })).toMatch(/x\nafter$/);
    expect(harmless([Buffer.from('\x1b]0;title\nafter')], { color: true, lines: false })).toBe('\nafter');
  });
});

describe('lines', () => {
  it('are the same wherever the output is cut', () => {
    fc.assert(
      fc.property(texts, cuts, (bytes, at) => {
        const splitter = new LineSplitter();
        const lines = pieces(bytes, at).flatMap((piece) => splitter.push(piece).map(String));
        const last = splitter.end();
        const all = bytes.toString('latin1').split('\n');
        const rest = all.pop();
        expect(lines.map((line) => Buffer.from(line).toString('latin1')).length).toBe(all.length);
        expect([...lines, ...(last === null ? [] : [String(last)])].join('\n')).toBe(
          bytes.toString().replace(/\n$/, ''),
        );
        expect(last === null).toBe(rest === '');
      }),
    );
  });

  it('without end are cut, and lose nothing', () => {
    const splitter = new LineSplitter();
    const bytes = Buffer.alloc(200_000, 'x');
    const lines = [...splitter.push(bytes.subarray(0, 1)), ...splitter.push(bytes.subarray(1)), splitter.end()];
    expect(Math.max(...lines.map((line) => line?.length ?? 0))).toBeLessThanOrEqual(64 * 1024);
    expect(Buffer.concat(lines.flatMap((line) => line ?? [])).equals(bytes)).toBe(true);
  });
});

it('is reported as written in the order in which it came', () => {
  const inOrder = new InOrder();
  const told: number[] = [];
  const [first, second, third] = [1, 2, 3].map((number) => inOrder.next(() => told.push(number)));
  second?.();
  expect(told).toEqual([]);
  first?.();
  expect(told).toEqual([1, 2]);
  third?.();
  expect(told).toEqual([1, 2, 3]);
});
