/** Work that screens are spared, and pictures of states that random output seldom ends in. */
import { describe, expect, it } from 'vitest';
import { LONGEST, looksOfScreen, newScreen, SecondTerminal, write } from './second-terminal.js';

const DIRT = '\x1b[?1049h\x1b[?1003;1006;1004;2004h\x1b[?25l\x1b[5;9r\x1b[?6h\x1b[4h\x1b[31mdirt\x1b]2;half a tit';

function pictureOf(output: string, cols = 40, rows = 12): { picture: string; screen: ReturnType<typeof newScreen> } {
  const screen = newScreen(cols, rows);
  write(screen, output);
  return { picture: screen.picture(LONGEST).toString(), screen };
}

describe('the picture of a state', () => {
  it.each([
    ['line drawing characters selected', 'abc\x1b(0lqk'],
    ['a shifted character set', '\x1b)0\x1b*A\x0equ'],
    ['a third character set', '\x1b*0\x1bnx'],
    ['an underline of its own', 'abc\x1b[4:3;58:2::9:8:7mx'],
    ['an indexed underline', 'abc\x1b[4:2;58:5:200mx'],
    ['origin mode in margins', '\x1b[3;7r\x1b[?6h\x1b[2;5Hhere'],
    ['a cursor that waits to wrap', `\x1b[4;1H${'x'.repeat(40)}`],
    ['a wide character that waits to wrap', `\x1b[4;1H${'x'.repeat(38)}漢`],
    ['a wrap in insert mode without wrapping', `\x1b[4h\x1b[?7l\x1b[4;1H${'y'.repeat(45)}`],
    ['a saved cursor with looks', '\x1b[3;3H\x1b[1;44m\x1b7\x1b[m\x1b[9;9Hthere'],
    ['the alternate screen over another', 'shell\r\n$ vi\x1b[?1049h\x1b[2;5r\x1b[Hvi\x1b[?1h\x1b=\x1b[?1002;1006h'],
    ['a hidden, shaped cursor', '\x1b[?25l\x1b[5 q'],
    ['a blinking cursor', '\x1b[?12h'],
    ['focus, pasting, mouse pixels', '\x1b[?1004;2004;1003;1016h'],
    ['tab stops of its own', '\x1b[3g\x1b[5G\x1bH\x1b[11G\x1bH\r'],
    ['new lines that return', '\x1b[20hx'],
  ])('tells %s', (_, output) => {
    const { picture, screen } = pictureOf(output);
    for (const dirt of ['', DIRT]) {
      const second = new SecondTerminal(40, 12).write(dirt).write(picture);
      expect(second.looks()).toEqual(looksOfScreen(screen));
    }
  });

  it('is the same wherever the output was cut', () => {
    const output = Buffer.from('“quoted” — … • e\u0301 漢 👩\u200d👩\u200d👧 \xff zażółć\x1b[31m─┐\x1b[0m ‰');
    const whole = newScreen(40, 12);
    whole.write(output);
    const picture = whole.picture(LONGEST);
    for (let cut = 1; cut < output.length; cut += 1) {
      const screen = newScreen(40, 12);
      screen.write(output.subarray(0, cut));
      screen.write(output.subarray(cut));
      expect(screen.picture(LONGEST).equals(picture), `cut at ${cut}`).toBe(true);
    }
  });

  it('is of whole characters, and says how many bytes of another one have come', () => {
    const screen = newScreen(40, 12);
    screen.write(Buffer.from('a…').subarray(0, 3));
    expect(screen.pending).toBe(2);
    screen.write(Buffer.from('…').subarray(2));
    expect(screen.pending).toBe(0);
    expect(screen.picture(LONGEST).toString()).toContain('…');
  });

  it('gives the title without what could do harm', () => {
    const titles: string[] = [];
    const { picture } = pictureOf('\x1b]0;rm \u202e-rf\u2028\u0001 ~\x1b\\');
    const second = new SecondTerminal(40, 12);
    second.onTitle((title) => titles.push(title));
    second.write(picture);
    expect(titles).toEqual(['rm -rf ~']);
  });

  it('leaves the title alone when the program never set one', () => {
    expect(pictureOf('plain').picture).not.toContain('\x1b]');
  });

  it('asks nothing, so that nothing is typed into the shell', () => {
    const answers: string[] = [];
    const { picture } = pictureOf('\x1b[c\x1b[6n\x1b[>c\x1b]11;?\x07\x1bP$qm\x1b\\\x1b[?2026$ptext');
    const second = new SecondTerminal(40, 12);
    second.onAnswer((answer) => answers.push(answer));
    second.write(picture);
    expect(answers).toEqual([]);
  });

  it('names columns after characters whose width is in doubt', () => {
    const { picture } = pictureOf('👩‍👩‍👧|⚠️|');
    expect(picture).toMatch(/\x1b\[1;\d+H\|/);
  });
});

describe('a picture of a huge screen', () => {
  const colourful = Array.from({ length: 200 * 50 }, (_, at) => `\x1b[38;2;${at % 256};1;${at % 7}mx`).join('');

  it('leaves out looks, and at last the text, when it would be too long', () => {
    const screen = newScreen(200, 50);
    write(screen, `${colourful}\x1b[m\x1b[H`);
    const full = screen.picture(LONGEST);
    const plain = screen.picture(full.length - 1);
    const bare = screen.picture(1_000);
    expect(full.toString()).toContain('38;2;');
    expect(plain.toString()).not.toContain('38;2;');
    expect(plain.toString()).toContain('x'.repeat(100));
    expect(bare.length).toBeLessThan(1_000);
  });
});

describe('hostile output', () => {
  it.each([
    [
      'counts without end',
      '\x1b[2147483647L\x1b[2147483647M\x1b[2147483647S\x1b[2147483647T\x1b[2147483647Ix\x1b[2147483647b',
    ],
    ['many counts without end', 'x\x1b[2147483647b\x1b[2147483647M'.repeat(200)],
    ['a margin that is erased up to the last cell', '\x1b[99;99H\x1b[1J'],
    ['a string without end', `\x1b]2;${'t'.repeat(1_000_000)}\x07`],
    ['a colour query without end', `\x1b]4;${'1;?;'.repeat(300_000)}`],
    ['a request without end', `\x1bP$q${'m'.repeat(1_000_000)}\x1b\\`],
    ['a sequence that is never finished', `\x1b[${'1;'.repeat(500_000)}`],
    [
      'nothing but noise',
      Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 7919) % 256)).toString('latin1'),
    ],
  ])('does no harm: %s', (_, output) => {
    const screen = newScreen(40, 12);
    write(screen, output);
    write(screen, '\x18\x1b\\\x1bcstill here');
    const second = new SecondTerminal(40, 12).write(screen.picture(LONGEST));
    expect(second.looks().rows[0]?.[0]).toContain('still here');
    expect(screen.picture(LONGEST).length).toBeLessThan(64 * 1024);
  });

  it('joins combining characters to a narrow or wide one', () => {
    for (const [base, width] of [
      ['e', 1],
      ['漢', 2],
      ['👩', 2],
    ] as const) {
      const { screen } = pictureOf(`${base}\u0301\u0302x`);
      const { rows, cursor } = looksOfScreen(screen);
      expect(rows[0]?.[0]?.replace(' ', '')).toContain(`${base}\u0301\u0302x`);
      expect(cursor.x).toBe(width + 1);
    }
  });

  it('gives a cell no more combining characters than text has', () => {
    const { picture } = pictureOf(`e${'\u0301'.repeat(100_000)}`);
    expect(Buffer.byteLength(picture)).toBeLessThan(2_000);
  });

  it('shows no combining character that has nothing to join', () => {
    const { screen } = pictureOf(`${'x'.repeat(40)}\x1b[m\u0301\u0302`);
    expect(looksOfScreen(screen).cursor.x).toBe(40);
  });
});
