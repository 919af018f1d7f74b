/**
 * Takes the output of a terminal apart as terminals do (the state machine of the VT500), over any borders of chunks. Control
 * strings (OSC, DCS, APC, PM, SOS) are dropped: whoever listens never learns what was in them.
 */

/** A control sequence: `ESC [ prefix params intermediates final`. */
export interface ControlSequence {
  /** One of `<=>?`, or empty. */
  readonly prefix: string;
  /** Digits, `;` and `:`. */
  readonly params: string;
  readonly intermediates: string;
  readonly final: string;
}

export interface EscapeListener {
  /** Text without any control character. */
  print(text: string): void;
  /** One of C0, but never ESC, CAN or SUB. */
  control(character: string): void;
  /** `ESC intermediates final`; what has an 8-bit form too comes as this. */
  escape(intermediates: string, final: string): void;
  sequence(sequence: ControlSequence): void;
}

type State = 'ground' | 'escape' | 'sequence' | 'ignored' | 'string' | 'title';

/** What a sequence may have between `[` and its final at most. */
const LONGEST = 256;
const RUN = /[^\x00-\x1f\x7f-\x9f]+/y;
const STRING_REST = /[^\x07\x18\x1a\x1b\x9c]+/y;
const BODY = /^([<=>?]?)([\d;:]*)([ -/]*)$/;

export class EscapeParser {
  private readonly listener: EscapeListener;
  private state: State = 'ground';
  /** What came of the sequence so far. */
  private body = '';
  /** The first half of a character (UTF-16), at the end of a chunk. */
  private half = '';

  constructor(listener: EscapeListener) {
    this.listener = listener;
  }

  write(chunk: string): void {
    const text = this.half + chunk;
    this.half = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : '';
    this.takeAll(this.half === '' ? text : text.slice(0, -1));
  }

  private takeAll(text: string): void {
    for (let at = 0; at < text.length; ) {
      const length = this.skip(text, at);
      if (length > 0) {
        if (this.state === 'ground') this.listener.print(text.slice(at, at + length));
        at += length;
      } else {
        this.take(text[at] as string);
        at += 1;
      }
    }
  }

  /** How many characters from there on mean nothing but themselves, or are part of a string. */
  private skip(text: string, at: number): number {
    if (this.state !== 'ground' && this.state !== 'string') return 0;
    const run = this.state === 'ground' ? RUN : STRING_REST;
    run.lastIndex = at;
    return run.exec(text)?.[0].length ?? 0;
  }

  private take(character: string): void {
    if (character === '\x1b') this.enter('escape');
    else if (character === '\x18' || character === '\x1a') this.enter('ground');
    else if (character >= '\x80' && character <= '\x9f') this.takeEightBit(character);
    // BEL ends titles and the like; of other strings it is a part, but nothing of any is told.
    else if (this.state === 'string') this.enter(character === '\x07' ? 'ground' : 'string');
    else if (this.state === 'title') this.enter(character < ' ' ? 'ground' : 'title');
    else if (character < ' ') this.listener.control(character);
    else if (character === '\x7f') return;
    else if (this.state === 'escape') this.takeEscape(character);
    else if (this.state === 'sequence') this.takeSequence(character);
    else if (this.state === 'ignored' && character >= '@') this.enter('ground');
  }

  private enter(state: State): void {
    this.state = state;
    this.body = '';
  }

  /** The 8-bit forms are `ESC` and a character that is 64 below. */
  private takeEightBit(character: string): void {
    this.enter('escape');
    this.takeEscape(String.fromCharCode(character.charCodeAt(0) - 64));
  }

  private takeEscape(character: string): void {
    if (character >= ' ' && character <= '/') {
      this.body = (this.body + character).slice(0, LONGEST);
    } else if (character > '~') {
      this.enter('ground');
    } else if (this.body === '' && character === '[') {
      this.enter('sequence');
    } else if (this.body === '' && /[\]PX^_]/.test(character)) {
      this.enter('string');
    } else if (this.body === '' && character === 'k') {
      this.enter('title');
    } else {
      const intermediates = this.body;
      this.enter('ground');
      this.listener.escape(intermediates, character);
    }
  }

  private takeSequence(character: string): void {
    if (character < '@') {
      this.body += character;
      if (this.body.length > LONGEST) this.enter('ignored');
      return;
    }
    const [, prefix, params, intermediates] = BODY.exec(this.body) ?? [];
    this.enter('ground');
    if (character > '~' || prefix === undefined || params === undefined || intermediates === undefined) return;
    this.listener.sequence({ prefix, params, intermediates, final: character });
  }
}
