/**
 * Finds the escapes among what is typed: at the beginning of a line, or anywhere for somebody who only watches; never inside of
 * a bracketed paste.
 */

export type Escape = 'detach' | 'close' | 'redraw' | 'speed' | 'askPen' | 'suspend' | 'help';

export type Typed =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'escape'; readonly wish: Escape };

const KEYS: Readonly<Record<string, Escape>> = {
  '.': 'detach',
  K: 'close',
  r: 'redraw',
  s: 'speed',
  w: 'askPen',
  '\x1a': 'suspend',
  '?': 'help',
};
const PASTE_BEGINS = Buffer.from('\x1b[200~');
const PASTE_ENDS = Buffer.from('\x1b[201~');
const ESC = 0x1b;
const BRACKET = 0x5b;
const CR = 0x0d;
const LF = 0x0a;

export class EscapeReader {
  /** One byte; null when there are no escapes. */
  private readonly character: number | null;
  private atLineStart = true;
  /** Inside of what a single key sends, such as `ESC [ 3 ~`. */
  private inKey = false;
  /** The escape character is typed, and what it means depends on what follows. */
  private pending = false;
  private inPaste = false;
  /** How much of the marker that begins or ends a paste has come. */
  private matched = 0;

  /** @param character of one byte, or null for none */
  constructor(character: string | null) {
    this.character = character === null ? null : character.charCodeAt(0);
  }

  /** @param isAnywhere an escape may begin in the middle of a line, as nothing that is typed is sent */
  read(bytes: Buffer, isAnywhere = false): readonly Typed[] {
    if (this.character === null) return [{ kind: 'bytes', bytes }];
    const typed: Typed[] = [];
    let kept: number[] = [];
    for (const byte of bytes) {
      if (isAnywhere && !this.inKey) this.atLineStart = true;
      const wish = this.step(byte, kept);
      if (wish === null) continue;
      if (kept.length > 0) typed.push({ kind: 'bytes', bytes: Buffer.from(kept) });
      kept = [];
      typed.push({ kind: 'escape', wish });
    }
    if (kept.length > 0) typed.push({ kind: 'bytes', bytes: Buffer.from(kept) });
    return typed;
  }

  /** Adds to `kept` what is to be sent. */
  private step(byte: number, kept: number[]): Escape | null {
    if (this.pending) return this.afterCharacter(byte, kept);
    if (byte === this.character && this.atLineStart && !this.inPaste) {
      this.pending = true;
      return null;
    }
    this.pass(byte, kept);
    return null;
  }

  private afterCharacter(byte: number, kept: number[]): Escape | null {
    this.pending = false;
    const wish = KEYS[String.fromCharCode(byte)];
    if (wish !== undefined && byte !== this.character) return wish;
    kept.push(this.character ?? 0);
    this.atLineStart = false;
    if (byte !== this.character) this.pass(byte, kept);
    return null;
  }

  private pass(byte: number, kept: number[]): void {
    kept.push(byte);
    this.atLineStart = !this.inPaste && (byte === CR || byte === LF);
    this.inKey = byte === ESC || (this.inKey && (byte === BRACKET || byte < 0x40 || byte > 0x7e));
    const marker = this.inPaste ? PASTE_ENDS : PASTE_BEGINS;
    if (byte === marker[this.matched]) this.matched += 1;
    else this.matched = byte === marker[0] ? 1 : 0;
    if (this.matched < marker.length) return;
    this.matched = 0;
    this.inPaste = !this.inPaste;
  }
}
