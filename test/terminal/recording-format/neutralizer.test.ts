/** A replay draws, and does nothing else: checked with a list of what hostile programs print. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toHarmlessCast, toHtml, toText } from '../../../src/terminal/recording/convert-cast.js';
import { Neutralizer } from '../../../src/terminal/recording/neutralizer.js';
import { all, encode, itemsOf, read } from '../../support/recording-format.js';

const neutral = (...chunks: readonly string[]): string => {
  const neutralizer = new Neutralizer();
  return chunks.map((chunk) => neutralizer.write(chunk)).join('');
};

const HOSTILE: readonly (readonly [what: string, text: string])[] = [
  ['clipboard', '\x1b]52;c;ZXZpbA==\x07'],
  ['clipboard, long end', '\x1b]52;c;ZXZpbA==\x1b\\'],
  ['clipboard, 8 bit', '\x9d52;c;ZXZpbA==\x9c'],
  ['title', '\x1b]0;owned\x07'],
  ['title of screen', '\x1bkowned\x1b\\'],
  ['title report', '\x1b[21t'],
  ['icon report', '\x1b[20t'],
  ['window size', '\x1b[8;500;500t'],
  ['where is the cursor', '\x1b[6n'],
  ['status', '\x1b[5n'],
  ['private status', '\x1b[?6n'],
  ['who are you', '\x1b[c'],
  ['who are you, 2', '\x1b[>c'],
  ['who are you, 3', '\x1b[=c'],
  ['who are you, 8 bit', '\x9bc'],
  ['who are you, old', '\x1bZ'],
  ['answer back', '\x05'],
  ['mode request', '\x1b[?2004$p'],
  ['setting request', '\x1bP$qm\x1b\\'],
  ['capability request', '\x1bP+q544e\x1b\\'],
  ['sixel', '\x1bPq#0;2;0;0;0~~\x1b\\'],
  ['terminal parameters', '\x1b[x'],
  ['checksum request', '\x1b[1;1;1;1;1;1*y'],
  ['version request', '\x1b[>q'],
  ['colour request', '\x1b]11;?\x07'],
  ['palette', '\x1b]4;0;#000000\x07'],
  ['link', '\x1b]8;;file:///etc/passwd\x07'],
  ['notification', '\x1b]777;notify;a;b\x07'],
  ['graphics', '\x1b_Gf=100;AAAA\x1b\\'],
  ['privacy message', '\x1b^hidden\x1b\\'],
  ['start of string', '\x1bXhidden\x1b\\'],
  ['mouse', '\x1b[?1000h'],
  ['mouse, in company', '\x1b[?1003;1006h'],
  ['focus', '\x1b[?1004h'],
  ['bracketed paste', '\x1b[?2004h'],
  ['application keys', '\x1b[?1h'],
  ['keypad', '\x1b='],
  ['keyboard locked', '\x1b[2h'],
  ['new line mode', '\x1b[20h'],
  ['132 columns', '\x1b[?3h'],
  ['keyboard protocol', '\x1b[>1u'],
  ['modified keys', '\x1b[>4;2m'],
  ['synchronised output', '\x1b[?2026h'],
  ['printer', '\x1b[5i'],
  ['character set', '\x1b%@'],
  ['single shift', '\x1bN'],
  ['8-bit controls', '\x1b G'],
  ['conformance', '\x1b[61"p'],
  ['lines that left the screen', '\x1b[3J'],
  ['tab stops', '\x1b[3g'],
  ['double height', '\x1b#3'],
  ['bell', '\x07'],
  ['null', '\x00'],
  ['delete', '\x7f'],
  ['right to left', '\u202e'],
  ['isolate', '\u2066'],
  ['mark', '\u200f'],
  ['tag', '\u{e0041}'],
  ['line separator', '\u2028'],
];

/** Nothing but text, drawing sequences and modes that look: what may be left. */
const HARMLESS =
  /^(?:[^\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u2028\u2029]|[\b\t\n\v\f\r\x0e\x0f]|\x1b[78DEM]|\x1b[()*+][AB0]|\x1b\[[\d;:]*[@A-HIJKLMPSXZTab`defmrsu]|\x1b\[4[hl]|\x1b\[\?[\d;]+[hlJK]|\x1b\[\d? q|\x1b\[!p)*$/u;

describe('the neutraliser', () => {
  it.each(HOSTILE)('takes out: %s', (_, hostile) => {
    expect(neutral(`before${hostile}after`)).toBe('beforeafter');
    for (let cut = 1; cut < hostile.length; cut += 1) {
      expect(neutral(`before${hostile.slice(0, cut)}`, `${hostile.slice(cut)}after`)).toBe('beforeafter');
    }
    expect(neutral('before', ...hostile, 'after')).toBe('beforeafter');
  });

  it.each([
    ['colours', '\x1b[1;31mred\x1b[0m \x1b[38;2;1;2;3mx\x1b[48:5:7my'],
    ['cursor', '\x1b[2J\x1b[H\x1b[5;7Hx\x1b[A\x1b[2K\x1b7\x1b8'],
    ['the other screen', '\x1b[?1049h\x1b[?25lvim\x1b[?25h\x1b[?1049l'],
    ['mouse off', '\x1b[?1000l'],
    ['bracketed paste off', '\x1b[?2004l'],
    ['lines of a box', '\x1b(0lqk\x1b(B'],
    ['scrolling', '\x1b[3;20r\x1b[2S\x1bM\x1b[L'],
    ['its cursor', '\x1b[4 q'],
    ['joined emoji', '👩‍💻 ✌️'],
  ])('lets through: %s', (_, text) => {
    expect(neutral(text)).toBe(text);
    expect(neutral(...(text.match(/./gsu) ?? []))).toBe(text);
  });

  it('takes the hostile modes out of a list and leaves the others', () => {
    expect(neutral('\x1b[?1049;1006;25h')).toBe('\x1b[?1049;25h');
  });

  it('lets nothing hostile through, whatever comes and wherever it is cut', () => {
    const piece = fc.oneof(
      fc.constantFrom(...HOSTILE.map(([, text]) => text)),
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc.constantFrom(
        '\x1b',
        '[',
        ']',
        '?',
        '>',
        '\x9b',
        '\x90',
        '\\',
        '\x18',
        'P',
        '5',
        ';',
        'h',
        'c',
        'n',
        '\x07',
        ' ',
        '$',
      ),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(200)), (pieces, cuts) => {
        const text = pieces.join('');
        const places = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
        const out = neutral(...places.slice(1).map((end, index) => text.slice(places[index], end)));
        expect(out).toMatch(HARMLESS);
        // Output that was let through is let through again as it is: nothing new comes of putting it together.
        expect(neutral(out)).toBe(out);
        expect(neutral(text)).toBe(out);
      }),
      { numRuns: 2_000 },
    );
  });

  it('undoes what it has let through, and nothing that was not', () => {
    const neutralizer = new Neutralizer();
    neutralizer.write('\x1b[?1049h\x1b[?5h\x1b[?6h');
    neutralizer.write('\x1b[?6l');
    const undo = neutralizer.undo();
    expect(undo).toContain('\x1b[?1049l');
    expect(undo).toContain('\x1b[?5l');
    expect(undo).not.toContain('\x1b[?6l');
    expect(new Neutralizer().undo()).not.toContain('1049');
  });
});

describe('what recordings become', () => {
  const hostile = HOSTILE.map(([what, text]) => `${what}${text}<script>alert("x")</script>\r\n`).join('');
  const file = encode([{ do: 'output', stream: 'out', bytes: Buffer.from(hostile) }]);

  it('as text has no control characters', async () => {
    const text = (await all(toText(await read(file)))).join('');
    expect(text).toMatch(/^[^\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]*$/u);
    expect(text).toContain('clipboard<script>');
  });

  it('as a page has no tags but ours, and no script', async () => {
    const page = (await all(toHtml(await read(file)))).join('');
    const tags = new Set([...page.matchAll(/<\/?([a-z!]+)/g)].map(([, tag]) => tag));
    expect([...tags].sort()).toEqual(['!doctype', 'body', 'head', 'html', 'meta', 'pre', 'style', 'title']);
    expect(page).toContain("default-src 'none'");
    expect(page).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
  });

  it('as a harmless recording has harmless output', async () => {
    const items = await itemsOf((await all(toHarmlessCast(await read(file)))).join(''));
    const output = items.map((item) => (item.kind === 'output' ? item.text : '')).join('');
    expect(output).toMatch(HARMLESS);
    expect(output).toContain('clipboard<script>');
  });
});
