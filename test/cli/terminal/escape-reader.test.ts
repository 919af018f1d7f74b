import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { escapeCharacter, shownCharacter } from '../../../src/cli/terminal/session-options.js';
import { EscapeReader, type Typed } from '../../../src/cli/terminal/typed-input.js';

/** The sent bytes, with each escape as its name in angle brackets. */
function read(chunks: readonly (string | Buffer)[], character: string | null = '~'): string {
  const reader = new EscapeReader(character);
  const shown = (typed: Typed) => (typed.kind === 'bytes' ? typed.bytes.toString('latin1') : `<${typed.escape}>`);
  return chunks.flatMap((chunk) => reader.read(Buffer.from(chunk)).map(shown)).join('');
}

describe('escapes', () => {
  it.each([
    ['~.', '<detach>'],
    ['ls\r~.', 'ls\r<detach>'],
    ['ls\n~K', 'ls\n<close>'],
    ['~?~r~s~w~\x1a', '<help><redraw><speed><askPen><suspend>'],
    ['~~.', '~.'],
    ['a~.', 'a~.'],
    ['~x~.', '~x~.'],
    ['~\r~.', '~\r<detach>'],
    ['\x1b[200~\r~.\r\x1b[201~~.', '\x1b[200~\r~.\r\x1b[201~~.'],
    ['\x1b[200~x\x1b[201~\r~.', '\x1b[200~x\x1b[201~\r<detach>'],
    ['\x1b[3~~.', '\x1b[3~~.'],
  ])('reads %j as %j, in one piece and byte by byte', (typed, sent) => {
    expect(read([typed])).toBe(sent);
    expect(read([...typed])).toBe(sent);
  });

  it('are none without a character, and follow another one', () => {
    expect(read(['~.\r~K'], null)).toBe('~.\r~K');
    expect(read(['~.\r\x1d.'], escapeCharacter('^]'))).toBe('~.\r<detach>');
    expect(shownCharacter('\x1d')).toBe('^]');
    expect(escapeCharacter('none')).toBeNull();
    expect(() => escapeCharacter('é')).toThrow(/one character/);
  });

  it('may begin anywhere for an operator who only watches, but not in a paste', () => {
    const reader = new EscapeReader('~');
    const wishes = (text: string) =>
      reader.read(Buffer.from(text), true).flatMap((typed) => (typed.kind === 'escape' ? typed.escape : []));
    expect(wishes('abc~.')).toEqual(['detach']);
    expect(wishes('\x1b[200~x~.\x1b[201~x~w')).toEqual(['askPen']);
    expect(wishes('\x1b[3~.\x1b[3~~.')).toEqual(['detach']);
  });

  it('lose no byte that is none of them', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 20 })), (chunks) => {
        const bytes = Buffer.concat(chunks);
        const quiet = Buffer.from(bytes.map((byte) => (byte === 0x7e ? 0x7f : byte)));
        expect(read([quiet])).toBe(quiet.toString('latin1'));
      }),
    );
  });
});
