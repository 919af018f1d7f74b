/**
 * What a program has switched on in the terminal that shows it, so that exactly that can be switched off again. Reads the output
 * as it goes by and changes nothing.
 */

type State = 'ground' | 'escape' | 'intermediate' | 'csi' | 'string' | 'stringEscape';

/** DEC private modes that matter to whoever comes after, and what switches each of them off. */
const PRIVATE_OFF: Readonly<Record<string, string>> = {
  '1': '\x1b[?1l',
  '5': '\x1b[?5l',
  '6': '\x1b[?6l',
  '9': '\x1b[?9l',
  '66': '\x1b>',
  '1000': '\x1b[?1000l',
  '1002': '\x1b[?1002l',
  '1003': '\x1b[?1003l',
  '1004': '\x1b[?1004l',
  '1005': '\x1b[?1005l',
  '1006': '\x1b[?1006l',
  '1015': '\x1b[?1015l',
  '1016': '\x1b[?1016l',
  '2004': '\x1b[?2004l',
  '2026': '\x1b[?2026l',
  '2031': '\x1b[?2031l',
  '2048': '\x1b[?2048l',
};
const ALTERNATE = ['47', '1047', '1049'];
/** Longest sequence whose parameters are of interest. */
const LONGEST = 64;
const ESC = 0x1b;

export class ScreenModes {
  private state: State = 'ground';
  private sequence = '';
  private readonly on = new Set<string>();
  private alternate: string | null = null;
  private cursorHidden = false;
  private wrapOff = false;
  private insert = false;
  private keypad = false;
  private region = false;
  private modifyKeys = false;
  /** Depth of the keyboard protocol's stack. */
  private keyboards = 0;
  private charset = false;

  /** A full-screen program has the screen: the other one, or this one without a cursor, as top has it. */
  get isFullScreen(): boolean {
    return this.isAlternate || this.cursorHidden;
  }

  get isAlternate(): boolean {
    return this.alternate !== null;
  }

  /** Nothing has begun that is not complete. */
  get isAtRest(): boolean {
    return this.state === 'ground';
  }

  /** @param bytes that are written to the terminal now */
  watch(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.state === 'ground') {
        at = bytes.indexOf(ESC, at);
        if (at < 0) return;
        this.state = 'escape';
      } else this.step(bytes[at] ?? 0);
    }
  }

  /** Brings the terminal to where a shell expects it. Forgets what was on. */
  restore(): string {
    const parts = [
      // Ends whatever sequence was cut off.
      this.isAtRest ? '' : '\x18\x1b\\',
      this.region ? '\x1b7\x1b[r\x1b8' : '',
      this.modifyKeys ? '\x1b[>4m' : '',
      this.keyboards > 0 ? `\x1b[<${this.keyboards}u` : '',
      this.alternate === null ? '' : `\x1b[?${this.alternate}l`,
      ...[...this.on].map((mode) => PRIVATE_OFF[mode] ?? ''),
      this.keypad ? '\x1b>' : '',
      this.insert ? '\x1b[4l' : '',
      this.wrapOff ? '\x1b[?7h' : '',
      this.cursorHidden ? '\x1b[?25h' : '',
      this.charset ? '\x0f\x1b(B' : '',
      '\x1b[0m',
    ];
    this.reset();
    return parts.join('');
  }

  private reset(): void {
    this.state = 'ground';
    this.on.clear();
    this.alternate = null;
    this.cursorHidden = false;
    this.wrapOff = false;
    this.insert = false;
    this.keypad = false;
    this.region = false;
    this.modifyKeys = false;
    this.keyboards = 0;
    this.charset = false;
  }

  private step(byte: number): void {
    // CAN and SUB end every sequence, and ESC begins another one.
    if (byte === 0x18 || byte === 0x1a) this.state = 'ground';
    else if (this.state === 'string') this.inString(byte);
    else if (this.state === 'stringEscape') this.afterString(byte);
    else if (byte === ESC) this.state = 'escape';
    else if (this.state === 'escape') this.afterEscape(byte);
    else if (this.state === 'intermediate') this.afterIntermediate(byte);
    else this.inSequence(byte);
  }

  private inString(byte: number): void {
    if (byte === ESC) this.state = 'stringEscape';
    else if (byte === 0x07) this.state = 'ground';
  }

  private afterString(byte: number): void {
    if (byte === 0x5c) this.state = 'ground';
    else {
      this.state = 'escape';
      this.afterEscape(byte);
    }
  }

  private afterEscape(byte: number): void {
    const character = String.fromCharCode(byte);
    if (character === '[') {
      this.state = 'csi';
      this.sequence = '';
    } else if (']PX^_'.includes(character)) this.state = 'string';
    else if (byte >= 0x20 && byte <= 0x2f) {
      this.state = 'intermediate';
      if (character === '(') this.charset = true;
    } else {
      this.state = 'ground';
      if (character === '=') this.keypad = true;
      if (character === '>') this.keypad = false;
      if (character === 'c') this.reset();
    }
  }

  private afterIntermediate(byte: number): void {
    if (byte >= 0x30) this.state = 'ground';
  }

  private inSequence(byte: number): void {
    if (byte >= 0x40 && byte <= 0x7e) {
      this.state = 'ground';
      this.obey(this.sequence, String.fromCharCode(byte));
    } else if (byte >= 0x20 && this.sequence.length < LONGEST) this.sequence += String.fromCharCode(byte);
  }

  private obey(parameters: string, final: string): void {
    const isSet = final === 'h';
    if (isSet || final === 'l') {
      const isPrivate = parameters.startsWith('?');
      for (const mode of parameters.replace('?', '').split(';')) this.setMode(isPrivate ? mode : `ansi ${mode}`, isSet);
    } else if (final === 'r' && /^[\d;]*$/.test(parameters)) this.region = /[1-9]/.test(parameters);
    else if (final === 'm' && parameters.startsWith('>')) this.modifyKeys = /^>4;[1-9]/.test(parameters);
    else if (final === 'u') this.keyboard(parameters);
    else if (final === 'p' && parameters === '!') this.softReset();
  }

  private setMode(mode: string, isSet: boolean): void {
    if (ALTERNATE.includes(mode)) this.alternate = isSet ? mode : null;
    else if (mode === '25') this.cursorHidden = !isSet;
    else if (mode === '7') this.wrapOff = !isSet;
    else if (mode === 'ansi 4') this.insert = isSet;
    else if (mode in PRIVATE_OFF) {
      if (isSet) this.on.add(mode);
      else this.on.delete(mode);
    }
  }

  private keyboard(parameters: string): void {
    if (parameters.startsWith('>')) this.keyboards += 1;
    if (parameters.startsWith('<')) this.keyboards = Math.max(0, this.keyboards - (Number(parameters.slice(1)) || 1));
  }

  private softReset(): void {
    this.cursorHidden = false;
    this.insert = false;
    this.keypad = false;
    this.region = false;
  }
}
