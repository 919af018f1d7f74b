import { Terminal } from '@xterm/headless';
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
    ['\x1b[?1000;1006;25l\x1b[?1000;1006h', '\x1b[?25h\x1b[?1000l\x1b[?1006l'],
    ['\x1b[?2004h\x1b[?1h\x1b=', '\x1b[?2004l\x1b[?1l\x1b>'],
    ['\x1b[2;10r', '\x1b7\x1b[r\x1b8'],
    ['\x1b[2;10r\x1b[r', ''],
    ['\x1b[>1u\x1b[>5u\x1b[<u', '\x1b[<1u'],
    ['\x1b[>4;2m', '\x1b[>4m'],
    ['\x1b[4h\x1b[?7l', '\x1b[4l\x1b[?7h'],
    ['\x1b[?1049h\x1bc', ''],
    ['\x1b]0;a title with \x1b[?1049h\x07', '\x1b[?1049l'],
    ['\x1bPstring [?1049h\x1b\\', ''],
    ['\x1b[2h', '\x1b[2l'],
    ['\x1b[12l', '\x1b[12h'],
    ['\x1b[20h', '\x1b[20l'],
    ['\x1b[?5h', '\x1b[?5l'],
    ['\x1b[?8l', '\x1b[?8h'],
    ['\x1b[?12h', '\x1b[?12l'],
    ['\x1b[?45h', '\x1b[?45l'],
    ['\x1b[?69h\x1b[3;9s', '\x1b7\x1b[?69l\x1b8'],
    ['\x1b[?1007h', '\x1b[?1007l\x1b[?1007r'],
    ['\x1b[?1007l', '\x1b[?1007l\x1b[?1007r'],
    ['\x1b[?2027h', '\x1b[?2027l\x1b[?2027r'],
    ['\x1b[?3h', '\x1b[?3l'],
    ['\x1b[?9001h', '\x1b[?9001l'],
    ['\x1b[=1u', '\x1b[=0u'],
    ['\x1b[=1u\x1b[=0u', ''],
    ['\x1b[>1u\x1b[?1049h\x1b[>1u\x1b[=3;2u', '\x1b[<1u\x1b[=0u\x1b[?1049l\x1b[<1u'],
    ['\x1b[>1;2m', '\x1b[>1m'],
    ['\x1b[4 q', '\x1b[0 q'],
    ['\x1b[4 q\x1b[ q', ''],
    ['\x1b[1"q', '\x1b[0"q'],
    ['\x1b[1m\x0eqqq', '\x0f\x1b(B\x1b)B'],
    ['\x1b)0', '\x0f\x1b(B\x1b)B'],
    ['\x1bn', '\x0f\x1b(B\x1b)B'],
    ['\x1b]8;id=1;https://example.org/\x1b\\link', '\x1b]8;;\x1b\\'],
    ['\x1b]8;;https://example.org/\x07link\x1b]8;;\x07', ''],
    ['\x1b]4;1;#ff0000\x07', '\x1b]104\x1b\\'],
    ['\x1b]4;1;#ff0000\x07\x1b]104\x07', ''],
    ['\x1b]11;#000080\x1b\\\x1b]12;red\x1b\\', '\x1b]111\x1b\\\x1b]112\x1b\\'],
    ['\x1b]11;?\x1b\\', ''],
    ['\x1b]22;wait\x07', '\x1b]22;\x1b\\'],
    ['\x1b]9;4;1;50\x07', '\x1b]9;4;0\x1b\\'],
    ['cut off \x1b[?10', '\x18\x1b\\'],
  ])('for %j is %j', (output, off) => {
    expect(restored(output)).toBe(`${off}\x1b[0m${output.includes('\x1b') ? '\x1b[23;0t' : ''}`);
  });

  it.each([
    '\x1b[4h',
    '\x1b[?1h',
    '\x1b[?6h',
    '\x1b[?7l',
    '\x1b[?45h',
    '\x1b[?1002h',
    '\x1b[?1004h',
    '\x1b[?2004h',
    '\x1b=',
    '\x1b[?66h',
  ])('leaves a terminal as it was before %j', async (output) => {
    const terminal = new Terminal({ allowProposedApi: true });
    const write = (text: string) => new Promise<void>((resolve) => terminal.write(text, resolve));
    const before = { ...terminal.modes };
    await write(output);
    expect(terminal.modes).not.toEqual(before);
    await write(restored(output));
    expect(terminal.modes).toEqual(before);
    terminal.dispose();
  });

  it('leaves the characters of a terminal as they were', async () => {
    const terminal = new Terminal({ allowProposedApi: true });
    const write = (text: string) => new Promise<void>((resolve) => terminal.write(text, resolve));
    await write(`\x1b)0\x0eq${restored('\x1b)0\x0eq')}q`);
    expect(terminal.buffer.active.getLine(0)?.translateToString(true)).toBe('─q');
    terminal.dispose();
  });

  it('leaves the cursor where it was before a program with margins took the other screen', async () => {
    const terminal = new Terminal({ allowProposedApi: true });
    const write = (text: string) => new Promise<void>((resolve) => terminal.write(text, resolve));
    const output = '\x1b[5;7H\x1b[?1049h\x1b[3;9r\x1b[?6h\x1b[2;2H';
    await write(output + restored(output));
    const { cursorX, cursorY, type } = terminal.buffer.active;
    expect({ cursorX, cursorY, type }).toEqual({ cursorX: 6, cursorY: 4, type: 'normal' });
    expect(terminal.modes.originMode).toBe(false);
    terminal.dispose();
  });

  it('keeps the title in front of the first sequence, once until it is given back', () => {
    const modes = new ScreenModes();
    const keep = '\x1b[22;0t\x1b[?1007;2027s';
    const written = (text: string) => modes.watch(Buffer.from(text)).toString();
    expect(written('plain')).toBe('plain');
    expect(written('more \x1b')).toBe(`more ${keep}\x1b`);
    expect(written(']0;title\x07\x1b]2;another\x07')).toBe(']0;title\x07\x1b]2;another\x07');
    expect(modes.restore()).toBe('\x1b[0m\x1b[23;0t');
    expect(modes.restore()).toBe('\x1b[0m');
    expect(written('\x1b[m')).toBe(`${keep}\x1b[m`);
  });

  it('is the same however the output is cut', () => {
    const output =
      'a\x1b[?1049h\x1b]0;title\x07\x1b[?25l\x1b[1;31mred\x1b[2;5r\x1b(0\x1b[?1006;1002hé\x1b=\x1b[4 q\x1b]8;;a:b\x1b\\\x1b]11;red\x07\x0e\x1b[=5u';
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
