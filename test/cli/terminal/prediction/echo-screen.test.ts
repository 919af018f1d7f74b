/** Where predictions may be drawn, and that what is drawn can be taken away again. */
import { describe, expect, it } from 'vitest';
import { EchoScreen } from '../../../../src/cli/terminal/echo-screen.js';
import { paintOverlay } from '../../../../src/cli/terminal/predictor.js';

const SIZE = { cols: 20, rows: 4 };

function screen(text: string, isFresh = true): EchoScreen {
  const one = new EchoScreen({ ...SIZE, isFresh });
  one.write(Buffer.from(text));
  return one;
}

describe('a screen that is followed', () => {
  it.each([
    ['an empty screen', ''],
    ['a prompt in colours', '\x1b[1;32muser\x1b[0m:\x1b[34m~\x1b[0m$ '],
    ['a screen that was left again', '\x1b[?1049hvim\x1b[?1049l$ '],
    ['a background that was left again', '\x1b[44mbar\x1b[49m$ '],
  ])('takes predictions on %s', (_, text) => {
    expect(screen(text).isPredictable).toBe(true);
  });

  it.each([
    ['the alternate screen', '\x1b[?1049h'],
    ['a background', '\x1b[48;5;20m$ '],
    ['a screen that text is inserted into', '\x1b[4h$ '],
    ['a line that does not wrap', '\x1b[?7l$ '],
    ['the end of a full line', 'x'.repeat(20)],
  ])('takes none on %s', (_, text) => {
    expect(screen(text).isPredictable).toBe(false);
  });

  it('takes none in the middle of a character', () => {
    const one = screen('$ ');
    one.write(Buffer.from('é').subarray(0, 1));
    expect(one.isPredictable).toBe(false);
    one.write(Buffer.from('é').subarray(1));
    expect(one.isPredictable).toBe(true);
  });

  it('knows nothing of what was there before, until the program begins a line', () => {
    const one = screen('abc', false);
    expect(one.isPredictable).toBe(false);
    one.write(Buffer.from('\r\n$ '));
    expect(one.isPredictable).toBe(true);
    expect([one.col, one.at(0), one.at(1), one.at(2)]).toEqual([2, '$', ' ', '']);
    one.write(Buffer.from('\x1b[A'));
    expect(one.at(one.col)).not.toBe('');
  });

  it('tells a line from the same one after it has scrolled, and wide characters from empty cells', () => {
    const one = screen('\r\n\r\n\r\n$ ');
    const { line } = one;
    one.write(Buffer.from('x\r\n$ '));
    expect(one.line).not.toBe(line);
    one.write(Buffer.from('漢'));
    expect(one.at(3)).not.toBe('');
  });
});

describe('an overlay', () => {
  it('can be taken away again, with the cursor where it was', () => {
    const one = screen('$ echo one');
    const before = Array.from({ length: SIZE.cols }, (_, col) => one.at(col));
    const cells = [
      { col: 8, text: '' },
      { col: 9, text: '' },
      { col: 12, text: 'x' },
      { col: 13, text: 'y' },
    ];
    const { draw, undo } = paintOverlay({ cells, cursor: 14 }, one);
    one.write(Buffer.from(draw));
    expect([one.col, one.at(8), one.at(12), one.at(13)]).toEqual([14, '', 'x', 'y']);
    one.write(Buffer.from(undo));
    expect(Array.from({ length: SIZE.cols }, (_, col) => one.at(col))).toEqual(before);
    expect(one.col).toBe(10);
  });
});
