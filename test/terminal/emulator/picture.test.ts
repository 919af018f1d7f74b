/** The picture of a screen, drawn on another terminal, makes both the same. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryDirt, arbitraryOutput } from './arbitrary-output.js';
import type { Looks } from './looks.js';
import { LONGEST, looksOfScreen, newScreen, SecondTerminal, write } from './second-terminal.js';

const COLS = 20;
const ROWS = 10;

const size = fc.record({ cols: fc.integer({ min: 2, max: 30 }), rows: fc.integer({ min: 1, max: 14 }) });

type Step = string | { readonly cols: number; readonly rows: number };

interface Case {
  readonly before: readonly Step[];
  readonly dirt: string;
  readonly after: string;
}

/** Draws the picture of a screen on a dirty terminal, lets more output follow on both, and compares them after each. */
function compare({ before, dirt, after }: Case): void {
  const screen = newScreen(COLS, ROWS);
  let cols = COLS;
  let rows = ROWS;
  for (const step of before) {
    if (typeof step === 'string') write(screen, step);
    else {
      ({ cols, rows } = step);
      screen.resize(cols, rows);
    }
  }
  // No sequence puts the cursor beyond the margins while it counts from them.
  const { cursor, margins, modes } = looksOfScreen(screen);
  const [top = 0, bottom = 0] = margins.at(-1) ?? [];
  fc.pre(!('origin' in modes && modes.origin) || (cursor.y >= top && cursor.y <= bottom));
  const second = new SecondTerminal(cols, rows).write(dirt).write(screen.picture(LONGEST));
  const pictured = second.looks();
  expect(pictured).toEqual(looksOfScreen(screen));
  write(screen, after);
  // The saved state of a screen that was not shown is not in the picture.
  const known = ({ saved, ...looks }: Looks) => ({ ...looks, saved: saved.slice(0, pictured.saved.length) });
  expect(known(second.write(after).looks())).toEqual(known(looksOfScreen(screen)));
}

describe('a picture', () => {
  it('makes a fresh or dirty terminal the same, and it stays the same as output follows', () => {
    const given = fc.record({
      before: fc.array(fc.oneof({ weight: 5, arbitrary: arbitraryOutput }, size), { minLength: 1, maxLength: 4 }),
      dirt: fc.oneof(fc.constant(''), arbitraryDirt),
      // Not even a combining character is to belong to what was before.
      after: arbitraryOutput.map((output) => `\x07${output}`),
    });
    fc.assert(fc.property(given, compare), { numRuns: Number(process.env.ORCH_PICTURE_RUNS ?? 300) });
  });

  it('keeps what a combining character joins in the last column without wraparound', () => {
    const family = '👩\u200d👩\u200d👧';
    for (const end of ['', '\x1b[100m']) {
      compare({ before: [`\x1b[?7l0123456789012345678${family}${end}`], dirt: '', after: '\x07a\x1b[0m' });
      compare({ before: [`\x1b[?7l01234567890123456789${family}${end}`], dirt: '', after: '\x07a\x1b[0m' });
      compare({ before: [`\x1b[?7l012345678901234567890${family}${end}`], dirt: '', after: '\x07a\x1b[0m' });
    }
  });

  it('keeps a wide character in the last columns when one that does not fit follows without wraparound', () => {
    const after = '\x07\x1b[21mlined\x1b[0m';
    compare({ before: [{ cols: 2, rows: 1 }, '\x1b[?7l漢字かな'], dirt: '', after });
    compare({ before: ['\x1b[?7l\x1b[1;19H\x1b[7m漢\x1b[0;4m字'], dirt: '', after });
    const screen = newScreen(2, 1);
    write(screen, '\x1b[?7l漢字');
    expect(looksOfScreen(screen).rows).toEqual([['漢']]);
  });
});
