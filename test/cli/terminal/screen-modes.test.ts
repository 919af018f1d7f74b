import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ScreenModes } from '../../../src/cli/terminal/screen-modes.js';

const restored = (...chunks: readonly string[]): string => {
  const modes = new ScreenModes();
  for (const chunk of chunks) modes.watch(Buffer.from(chunk));
  return modes.restore();
};

describe('what is switched off at the end', () => {
  it.each([
    ['plain text, é 🦊 and \x1b[31mcolours\x1b[0m', ''],
    ['\x1b[?1049h', '\x1b[?1049l'],
    ['\x1b[?1049h\x1b[?1049l', ''],
    ['\x1b[?1000;1006;25l\x1b[?1000;1006h', '\x1b[?1000l\x1b[?1006l\x1b[?25h'],
    ['\x1b[?2004h\x1b[?1h\x1b=', '\x1b[?2004l\x1b[?1l\x1b>'],
    ['\x1b[2;10r', '\x1b7\x1b[r\x1b8'],
    ['\x1b[2;10r\x1b[r', ''],
    ['\x1b[>1u\x1b[>5u\x1b[<u', '\x1b[<1u'],
    ['\x1b[>4;2m', '\x1b[>4m'],
    ['\x1b[4h\x1b[?7l', '\x1b[4l\x1b[?7h'],
    ['\x1b[?1049h\x1bc', ''],
    ['\x1b]0;a title with \x1b[?1049h\x07', '\x1b[?1049l'],
    ['\x1bPstring [?1049h\x1b\\', ''],
    ['cut off \x1b[?10', '\x18\x1b\\'],
  ])('for %j is %j', (output, off) => {
    expect(restored(output)).toBe(`${off}\x1b[0m`);
  });

  it('is the same however the output is cut', () => {
    const output = 'a\x1b[?1049h\x1b]0;title\x07\x1b[?25l\x1b[1;31mred\x1b[2;5r\x1b(0\x1b[?1006;1002hé\x1b=';
    const whole = restored(output);
    fc.assert(
      fc.property(fc.array(fc.nat(output.length)), (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), output.length];
        const chunks = at.slice(1).map((end, index) => output.slice(at[index], end));
        expect(restored(...chunks)).toBe(whole);
      }),
    );
  });
});
