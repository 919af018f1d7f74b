/** A flood whose lines are passed over leaves the screen as if each had been drawn. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryOutput } from './arbitrary-output.js';
import { looksOfScreen, newScreen, write } from './second-terminal.js';

const COLS = 20;
const ROWS = 10;

const skimmed = (output: string, portion: number) => {
  let passed = 0;
  return {
    of: (screen: ReturnType<typeof newScreen>) => {
      const bytes = Buffer.from(output, 'latin1');
      for (let from = 0; from < bytes.length; from += portion) {
        const flood = bytes.subarray(from, from + portion);
        const begin = screen.skim(flood);
        passed += begin;
        write(screen, flood.subarray(begin));
      }
      return passed;
    },
  };
};

/** Lines of every length, ended and interrupted in every way. */
const line = fc.tuple(
  fc.string({ maxLength: 60, unit: fc.constantFrom(...'abc xyz01', '\t', '\b', '\r', '\x07', '\x7f', '\v', '\x00') }),
  fc.constantFrom('\r\n', '\r\n', '\r\n', '\r\n', '\n'),
);
const flood = fc
  .tuple(
    fc.array(line, { minLength: 1, maxLength: 60 }),
    fc.integer({ min: 1, max: 12 }),
    fc.constantFrom('', 'abc', '\r'),
  )
  .map(
    ([lines, times, rest]) =>
      lines
        .map((words) => words.join(''))
        .join('')
        .repeat(times * 20) + rest,
  );

describe('a flood of plain lines', () => {
  it('leaves any screen as if all of it had been drawn', () => {
    let passed = 0;
    fc.assert(
      fc.property(
        arbitraryOutput,
        flood,
        fc.integer({ min: 4_500, max: 70_000 }),
        arbitraryOutput,
        (before, output, portion, after) => {
          const whole = newScreen(COLS, ROWS);
          const quick = newScreen(COLS, ROWS);
          for (const screen of [whole, quick]) write(screen, before);
          write(whole, Buffer.from(output, 'latin1'));
          passed += skimmed(output, portion).of(quick);
          expect(looksOfScreen(quick)).toEqual(looksOfScreen(whole));
          for (const screen of [whole, quick]) write(screen, after);
          expect(looksOfScreen(quick)).toEqual(looksOfScreen(whole));
        },
      ),
      { numRuns: Number(process.env.ORCH_PICTURE_RUNS ?? 150) },
    );
    expect(passed).toBeGreaterThan(0);
  });

  it('is passed over but for what the screen shows', () => {
    const output = `${'a line of text\r\n'.repeat(4_000)}$ `;
    expect(newScreen(COLS, ROWS).skim(Buffer.from(output))).toBe(output.length - '$ '.length - ROWS * 16);
  });

  it.each([
    ['in margins', '\x1b[2;5r', 'text\r\n'],
    ['in the middle of a sequence', '\x1b]2;title', 'text\r\n'],
    ['when going back may go up', '\x1b[?45h', 'text\b\r\n'],
    ['with sequences', '', 'text\x1b[1m\r\n'],
    ['with character sets', '', 'text\x0e\r\n'],
    ['with other characters', '', 'téxt\r\n'],
    ['with an open column', '', 'text\n'],
    ['in few lines', '', `${'x'.repeat(9_000)}\r\n`],
  ])('is drawn %s', (_, before, text) => {
    const screen = newScreen(COLS, ROWS);
    write(screen, before);
    expect(screen.skim(Buffer.from(text.repeat(Math.ceil(5_000 / text.length))))).toBe(0);
  });
});
