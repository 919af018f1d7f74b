/** The parts of a terminal's output that touch the clipboard of the operator who types there. */
import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ClipboardFilter } from '../../../src/cli/terminal/clipboard-filter.js';
import type { ClipboardChoice } from '../../../src/cli/terminal/session-options.js';

interface Filtered {
  readonly shown: Buffer;
  readonly blocked: number;
}

function filter(clipboard: ClipboardChoice, chunks: readonly Buffer[]): Filtered {
  let blocked = 0;
  const one = new ClipboardFilter({
    clipboard,
    onBlocked: () => {
      blocked += 1;
    },
  });
  return { shown: Buffer.concat(chunks.map((chunk) => one.write(chunk))), blocked };
}

/** In one piece, byte by byte, and in two pieces at every place. */
function everyCut(bytes: Buffer): readonly (readonly Buffer[])[] {
  const halves = [...bytes.keys()].map((at) => [bytes.subarray(0, at), bytes.subarray(at)]);
  return [[bytes], [...bytes].map((byte) => Buffer.of(byte)), ...halves];
}

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');

const ENDS = ['\x07', '\x1b\\', '\x9c', '\xc2\x9c'];
const SETS = ENDS.flatMap((end) => [
  `\x1b]52;c;aGk=${end}`,
  `\x9d52;c;aGk=${end}`,
  `\xc2\x9d52;c;aGk=${end}`,
  `\x1b]052;;aGk=${end}`,
  `\x1b\n]5\r2\x7f;p;aGk=${end}`,
  `\x1b]1337;Copy=:aGk=${end}`,
  `\x1b]1337;CopyToClipboard=${end}`,
  `\x1b]50;copytoclipboard=x${end}`,
]);
const READS = ENDS.flatMap((end) => [
  `\x1b]52;c;?${end}`,
  `\x1b]52;;\x00?${end}`,
  `\xc2\x9d52;s0;?${end}`,
  `\x1b]5522;type=read;dGV4dA==${end}`,
]);
const OTHERS = [
  '\x1b]0;a title\x07',
  '\x1b]8;;https://example.org/52;c;\x1b\\link\x1b]8;;\x1b\\',
  '\x1b]520;c;aGk=\x07',
  '\x1b]5;2;rgb:00/00/00\x07',
  '\x1b]1337;CurrentDir=/tmp\x07',
  '\x1b]50;CursorShape=1\x07',
  '\x1b[31mred\x1b[m \x1b(0lqk\x1b(B \x1bP+q544e\x1b\\',
  '\x1b[52;1;2c',
];

describe('the clipboard of one who types', () => {
  it.each([...SETS, ...READS])('is not touched by %j, however it is cut', (text) => {
    for (const chunks of everyCut(bytesOf(`before${text}after`))) {
      const { shown, blocked } = filter('never', chunks);
      expect(blocked).toBe(1);
      expect(shown.toString('latin1')).toMatch(/^before\xc2?\x1b\\after$/);
    }
  });

  it.each(SETS)('is set by %j where it may be', (text) => {
    for (const chunks of everyCut(bytesOf(`before${text}after`))) {
      const { shown, blocked } = filter('copy', chunks);
      expect({ shown: shown.toString('latin1'), blocked }).toEqual({ shown: `before${text}after`, blocked: 0 });
    }
  });

  it.each(READS)('is never read by %j', (text) => {
    for (const chunks of everyCut(bytesOf(text))) expect(filter('copy', chunks).blocked).toBe(1);
  });

  it.each(OTHERS)('is no reason to change %j', (text) => {
    for (const chunks of everyCut(bytesOf(text))) {
      const { shown, blocked } = filter('never', chunks);
      expect({ shown: shown.toString('latin1'), blocked }).toEqual({ shown: text, blocked: 0 });
    }
  });

  it('is not reached through the strings that screen and tmux hand on', () => {
    for (const text of ['\x1bP\x1b]52;c;aGk=\x07\x1b\\', '\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\']) {
      const { shown, blocked } = filter('never', [bytesOf(text)]);
      expect(blocked).toBe(1);
      expect(shown.includes('52;c')).toBe(false);
    }
  });

  it('is not reached by a number that is written long, or by one that begins again', () => {
    const long = `\x1b]${'0'.repeat(500)}52;c;aGk=\x07`;
    for (const text of [long, '\x1b]0;\x1b]52;c;aGk=\x07', '\x1b]5\x9d52;c;aGk=\x07', '\x1b]52;\xe2\x80\x9c;?\x07']) {
      expect(filter('copy', [bytesOf(text.replace('aGk=', '?'))]).blocked).toBe(1);
      expect(filter('never', [bytesOf(text)]).blocked).toBe(1);
    }
  });

  it('is not reached by what stands on both sides of what is removed', () => {
    for (const end of ENDS) {
      const { shown } = filter('never', [bytesOf(`\x1b\x1b]52;c;aGk=${end}]52;c;aGk=\x07`)]);
      expect(filter('never', [shown]).blocked).toBe(0);
    }
  });

  it('leaves letters alone that have a byte of a control string', () => {
    // U+275D, U+5BDD, U+1F41D and U+05DD have 0x9D in UTF-8.
    const text = Buffer.from('❝52;c;aGk= 寝52;c;? 🐝52;c;aGk= ם52;c;?\x07');
    for (const chunks of everyCut(text)) {
      const { shown, blocked } = filter('never', chunks);
      expect({ shown: shown.toString(), blocked }).toEqual({ shown: text.toString(), blocked: 0 });
    }
  });

  it('says the same however the output is cut', () => {
    const piece = fc.constantFrom(
      ...SETS,
      ...READS,
      ...OTHERS,
      '\x1b',
      ']',
      '52;',
      '\x9d',
      '\xc2',
      '\x18',
      'text',
      '❝',
    );
    const output = fc.array(piece, { maxLength: 12 }).map((pieces) => bytesOf(pieces.join('')));
    fc.assert(
      fc.property(output, fc.constantFrom<ClipboardChoice>('never', 'copy'), (bytes, clipboard) => {
        const whole = filter(clipboard, [bytes]);
        for (const chunks of everyCut(bytes)) expect(filter(clipboard, chunks)).toEqual(whole);
        // The shown output is harmless for operators who look again.
        expect(filter(clipboard, [whole.shown]).blocked).toBe(0);
      }),
      { numRuns: 200 },
    );
  });
});
