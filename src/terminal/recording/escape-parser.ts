/**
 * Parses terminal output like a terminal does (VT500 state machine), across chunk boundaries. Drops the content of control strings
 * (OSC, DCS, APC, PM, SOS).
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
  /** Receives text without control characters. */
  print(text: string): void;
  /** Receives a C0 character except ESC, CAN and SUB. */
  control(character: string): void;
  /** Receives `ESC intermediates final`, also for its 8-bit form. */
  escape(intermediates: string, final: string): void;
  sequence(sequence: ControlSequence): void;
}

type State = 'ground' | 'escape' | 'sequence' | 'ignored' | 'string' | 'title';

/** Maximum number of characters between `[` and the final byte. */
const MAX_BODY_LENGTH = 256;
const RUN = /[^\x00-\x1f\x7f-\x9f]+/y;
const STRING_REST = /[^\x07\x18\x1a\x1b\x9c]+/y;
const BODY = /^([<=>?]?)([\d;:]*)([ -/]*)$/;

export class EscapeParser {
  private readonly listener: EscapeListener;
  private state: State = 'ground';
  /** Body of the current sequence so far. */
  private body = '';
  /** First surrogate of a pair at the end of a chunk. */
  private highSurrogate = '';

  constructor(listener: EscapeListener) {
    this.listener = listener;
  }

  write(chunk: string): void {
    const text = this.highSurrogate + chunk;
    this.highSurrogate = /[\ud800-\udbff]$/.test(text) ? text.slice(-1) : '';
    this.takeAll(this.highSurrogate === '' ? text : text.slice(0, -1));
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

  /** Returns how many characters from `at` on are plain text, or content of a control string. */
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
    // BEL ends OSC strings. It is content of other strings, but their content is dropped anyway.
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

  /** Handles an 8-bit control, which stands for `ESC` and the character 64 below it. */
  private takeEightBit(character: string): void {
    this.enter('escape');
    this.takeEscape(String.fromCharCode(character.charCodeAt(0) - 64));
  }

  private takeEscape(character: string): void {
    if (character >= ' ' && character <= '/') {
      this.body = (this.body + character).slice(0, MAX_BODY_LENGTH);
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
      if (this.body.length > MAX_BODY_LENGTH) this.enter('ignored');
      return;
    }
    const [, prefix, params, intermediates] = BODY.exec(this.body) ?? [];
    this.enter('ground');
    if (character > '~' || prefix === undefined || params === undefined || intermediates === undefined) return;
    this.listener.sequence({ prefix, params, intermediates, final: character });
  }
}
