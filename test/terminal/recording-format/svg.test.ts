/** The screen of a recording as an SVG picture. */
import { describe, expect, it } from 'vitest';
import { toSvg } from '../../../src/terminal/recording/svg.js';
import { all, encode, read } from '../../support/recording-format.js';

async function pictureOf(output: string, at?: number): Promise<string> {
  const file = encode([{ do: 'output', stream: 'out', bytes: Buffer.from(output) }]);
  return (await all(toSvg(await read(file), at))).join('');
}

/** The texts of a picture with their attributes. */
const textsOf = (picture: string) =>
  [...picture.matchAll(/<text ([^>]*)>([^<]*)<\/text>/g)].map(([, attributes = '', text = '']) => ({
    attributes,
    text,
  }));

describe('a picture', () => {
  it('shows the screen, not what was overwritten or scrolled away', async () => {
    const picture = await pictureOf('gone\x1b[2J\x1b[H10%\r100%\r\n\r\n  second');
    expect(textsOf(picture).map(({ text }) => text)).toEqual(['100%', 'second']);
  });

  it('keeps columns in line with every font', async () => {
    const [text] = textsOf(await pictureOf('  ab'));
    expect(text?.attributes).toBe('x="32.8" y="30" textLength="16.8"');
  });

  it('has the colours and the rest of the looks', async () => {
    const picture = await pictureOf(
      '\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mdark\x1b[0m \x1b[7mturned\x1b[0m \x1b[4;9mlines',
    );
    const looks = Object.fromEntries(textsOf(picture).map(({ text, attributes }) => [text, attributes]));
    expect(looks.red).toContain('style="fill:#cd0000;font-weight:bold"');
    expect(looks.dark).toContain('fill:#010203');
    expect(looks.turned).toContain('fill:#101010');
    expect(looks.lines).toContain('text-decoration:underline line-through');
    expect(picture).toContain('fill="#d0d0d0"/><text');
  });

  it('contains nothing that a viewer would run or load', async () => {
    const picture = await pictureOf(
      '</text><script>alert(1)</script> "&\' \u202e\u200b\x1b]8;;https://evil.example\x07link\x1b]8;;\x07',
    );
    expect(picture).not.toMatch(/<script|href|url\(|\u202e|\u200b/);
    expect(picture).not.toContain('evil.example');
    expect(textsOf(picture)[0]?.text).toContain('&lt;/text&gt;&lt;script&gt;');
  });
});
