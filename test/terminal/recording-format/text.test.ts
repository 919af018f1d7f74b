/** Recordings as lines of text and as a page. */
import { describe, expect, it } from 'vitest';
import { toHtml } from '../../../src/terminal/recording/convert-cast.js';
import { TextLines } from '../../../src/terminal/recording/text-lines.js';
import { all, encode, read } from '../../support/recording-format.js';

function textOf(output: string): string {
  const lines = new TextLines();
  return [...lines.write(0, output), ...lines.end()].map(({ text }) => text).join('\n');
}

describe('text', () => {
  it.each([
    ['plain lines', 'one\r\ntwo\r\n', 'one\ntwo'],
    ['empty lines', 'one\r\n\r\ntwo', 'one\n\ntwo'],
    ['colours', '\x1b[31mred\x1b[0m and not\r\n', 'red and not'],
    ['a progress bar', ' 10%\r 50%\r100%\r\ndone\r\n', '100%\ndone'],
    ['a shorter line over a longer one', 'downloading\rdone\x1b[K\r\n', 'done'],
    ['back spaces', 'lss\b\b  \b\b -la\r\n', 'l -la'],
    ['a typo that was put right', 'gti\b\b\x1b[Kit status\r\n', 'git status'],
    ['letters put in', 'helo\x1b[D\x1b[@l\r\n', 'hello'],
    ['letters taken out', 'helllo\x1b[3D\x1b[P\r\n', 'hello'],
    ['a column', 'a\x1b[10Gb\r\n', 'a        b'],
    ['tabs', 'a\tb\r\n', 'a\tb'],
    ['a title', '\x1b]0;title\x07text\r\n', 'text'],
    ['places on a screen', '\x1b[2J\x1b[1;1Hfirst\x1b[5;10Hsecond\x1b[?1049l$ ', 'first\nsecond\n$'],
    ['wide letters', '日本\r語\r\n', '語本'],
  ])('%s', (_, output, text) => {
    expect(textOf(output)).toBe(text);
  });

  it('tells when a line was begun', () => {
    const lines = new TextLines();
    expect(lines.write(1, 'be')).toEqual([]);
    expect(lines.write(5, 'gun\r\n')).toMatchObject([{ at: 1, text: 'begun' }]);
  });

  it('is cut where a line has no end', () => {
    const lines = new TextLines();
    const found = Array.from({ length: 40 }, () => lines.write(0, 'x'.repeat(10_000))).flat();
    expect(Math.max(...found.map(({ text }) => text.length))).toBeLessThan(80_000);
    expect([...found, ...lines.end()].map(({ text }) => text).join('')).toHaveLength(400_000);
  });
});

describe('a page', () => {
  it('has the colours and the rest of the looks', async () => {
    const output =
      '\x1b[1;31mred\x1b[0m \x1b[38;5;82mgreen\x1b[39m \x1b[48;2;1;2;3mpaper\x1b[m \x1b[7mturned\x1b[27m \x1b[4;9mlines\r\n';
    const page = (
      await all(toHtml(await read(encode([{ do: 'output', stream: 'out', bytes: Buffer.from(output) }]))))
    ).join('');
    expect(page).toContain('<span style="color:#cd0000;font-weight:bold">red</span>');
    expect(page).toContain('<span style="color:#5fff00">green</span>');
    expect(page).toContain('<span style="background:#010203">paper</span>');
    expect(page).toContain('<span style="color:#101010;background:#d0d0d0">turned</span>');
    expect(page).toContain('text-decoration:underline line-through">lines</span>');
    expect(page).toContain('<title>ada on web-01 2026-03-01T12:00:00.000Z</title>');
  });
});
