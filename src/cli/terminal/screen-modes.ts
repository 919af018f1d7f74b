/**
 * Tracks the terminal modes that a program switches on, to switch off exactly those afterwards. The only
 * change to the output are two sequences that save the title and some modes.
 */

type State = 'ground' | 'escape' | 'intermediate' | 'csi' | 'string' | 'stringEscape';

/** State that a shell expects of each mode; `?` marks a DEC private mode. */
const EXPECTED: Readonly<Record<string, boolean>> = {
  '2': false,
  '4': false,
  '12': true,
  '20': false,
  '?1': false,
  '?3': false,
  '?5': false,
  '?6': false,
  '?7': true,
  '?8': true,
  '?9': false,
  '?12': false,
  '?25': true,
  '?45': false,
  '?67': false,
  '?1000': false,
  '?1001': false,
  '?1002': false,
  '?1003': false,
  '?1004': false,
  '?1005': false,
  '?1006': false,
  '?1015': false,
  '?1016': false,
  '?2004': false,
  '?2026': false,
  '?2031': false,
  '?2048': false,
  '?9001': false,
};
/** Modes that terminals begin with differently: the terminal saves its own state, and gets it back. */
const KEPT = ['?1007', '?2027'];
const ALTERNATE = ['?47', '?1047', '?1049'];
/** Modes that save the cursor when set and restore it when reset. */
const SAVING = ['?1048', '?1049'];
/** Maximum kept bytes of a sequence. */
const LONGEST = 256;
const ESC = 0x1b;
const SHIFT_OUT = 0x0e;
/** Push and pop the title. Terminals without a title stack ignore both. */
const PUSH_TITLE = '\x1b[22;0t';
const POP_TITLE = '\x1b[23;0t';
/** Saves the modes of `KEPT`. Terminals that cannot save ignore it. */
const SAVE_MODES = '\x1b[?1007;2027s';
/** Turns a mode off, for terminals that have not saved it, and then back to what was saved. */
const restoreMode = (mode: string): string => `\x1b[${mode}l\x1b[${mode}r`;

/** Keyboard protocol of one screen: number of pushed entries, and whether flags were set without a push. */
interface Keyboard {
  depth: number;
  isSet: boolean;
}

export class ScreenModes {
  private state: State = 'ground';
  private sequence = '';
  /** Introducer of the current string: `]` for an OSC; the others change no setting. */
  private stringKind = '';
  private readonly changed = new Set<string>();
  private alternate: string | null = null;
  private keypad = false;
  private region = false;
  /** Numbers of the set keyboard resources of xterm. */
  private readonly keyResources = new Set<string>();
  private keyboards = newKeyboards();
  private charset = '';
  /** Sequences that undo other settings, by name. A full reset may leave these. */
  private readonly undo = new Map<string, string>();
  private isTitleKept = false;
  /** True if a notice has overwritten the program's saved cursor. */
  private isSavedCursorLost = false;
  private wasLostCursorWanted = false;

  /** True if a full-screen program runs: on the alternate screen, or without a cursor, like top. */
  get isFullScreen(): boolean {
    return this.isAlternate || this.changed.has('?25');
  }

  get isAlternate(): boolean {
    return this.alternate !== null;
  }

  /** True outside of sequences. */
  get isAtRest(): boolean {
    return this.state === 'ground';
  }

  /** Records that a notice has overwritten the saved cursor. */
  loseSavedCursor(): void {
    this.isSavedCursorLost = true;
  }

  /** Records that a screen picture saves the program's cursor again. */
  regainSavedCursor(): void {
    this.isSavedCursorLost = false;
    this.wasLostCursorWanted = false;
  }

  /** Returns true once after the program restored a lost cursor, which garbles the screen. */
  takeLostCursor(): boolean {
    const { wasLostCursorWanted } = this;
    this.wasLostCursorWanted = false;
    return wasLostCursorWanted;
  }

  /** Tracks program output. Returns the bytes to write: title and modes are saved before the first sequence. */
  watch(bytes: Buffer): Buffer {
    const first = this.isTitleKept ? -1 : bytes.indexOf(ESC);
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.state !== 'ground') {
        this.step(bytes[at] ?? 0);
        continue;
      }
      const next = bytes.indexOf(ESC, at);
      if (bytes.subarray(at, next < 0 ? bytes.length : next).includes(SHIFT_OUT)) this.noteCharset();
      if (next < 0) break;
      at = next;
      this.state = 'escape';
    }
    if (first < 0) return bytes;
    this.isTitleKept = true;
    return Buffer.concat([bytes.subarray(0, first), Buffer.from(PUSH_TITLE + SAVE_MODES), bytes.subarray(first)]);
  }

  /** Returns the sequences that restore the terminal for a shell, and resets the tracking. */
  restore(): string {
    const { changed } = this;
    // Leaving ?1049 restores the cursor; otherwise it must be saved here.
    const region = this.alternate === '?1049' ? '\x1b[r' : '\x1b7\x1b[r\x1b8';
    const parts = [
      // Ends a cut-off sequence.
      this.isAtRest ? '' : '\x18\x1b\\',
      this.region ? region : '',
      // Resetting the origin mode also moves the cursor.
      changed.delete('?6') ? '\x1b[?6l' : '',
      ...[...this.keyResources].map((resource) => `\x1b[>${resource}m`),
      // Each screen has its own keyboard state.
      this.alternate === null ? '' : `${keyboardOff(this.keyboards.alternate)}\x1b[${this.alternate}l`,
      keyboardOff(this.keyboards.main),
      ...[...changed].map((mode) => `\x1b[${mode}${EXPECTED[mode] ? 'h' : 'l'}`),
      this.keypad ? '\x1b>' : '',
      this.charset,
      ...this.undo.values(),
      '\x1b[0m',
      this.isTitleKept ? POP_TITLE : '',
    ];
    this.reset();
    this.undo.clear();
    this.isTitleKept = false;
    return parts.join('');
  }

  private reset(): void {
    this.state = 'ground';
    this.changed.clear();
    this.alternate = null;
    this.keypad = false;
    this.region = false;
    this.keyResources.clear();
    this.keyboards = newKeyboards();
    this.charset = '';
  }

  private noteCharset(): void {
    this.charset = '\x0f\x1b(B\x1b)B';
  }

  private step(byte: number): void {
    // CAN and SUB end any sequence, and ESC starts another one.
    if (byte === 0x18 || byte === 0x1a) this.state = 'ground';
    else if (this.state === 'string') this.inString(byte);
    else if (this.state === 'stringEscape') this.afterString(byte);
    else if (byte === ESC) this.state = 'escape';
    else if (byte === SHIFT_OUT) this.noteCharset();
    else if (this.state === 'escape') this.afterEscape(byte);
    else if (this.state === 'intermediate') this.afterIntermediate(byte);
    else this.inSequence(byte);
  }

  private inString(byte: number): void {
    if (byte === ESC || byte === 0x07) {
      this.state = byte === ESC ? 'stringEscape' : 'ground';
      if (this.stringKind === ']') this.obeyString(this.sequence);
    } else if (this.sequence.length < LONGEST) this.sequence += String.fromCharCode(byte);
  }

  private afterString(byte: number): void {
    if (byte === 0x5c) this.state = 'ground';
    else {
      this.state = 'escape';
      this.step(byte);
    }
  }

  private afterEscape(byte: number): void {
    const character = String.fromCharCode(byte);
    if (character === '[') {
      this.state = 'csi';
      this.sequence = '';
    } else if (']PX^_'.includes(character)) {
      this.state = 'string';
      this.stringKind = character;
      this.sequence = '';
    } else if (byte >= 0x20 && byte <= 0x2f) {
      this.state = 'intermediate';
      if (character === '(' || character === ')') this.noteCharset();
    } else {
      this.state = 'ground';
      if (character === '=') this.keypad = true;
      if (character === '>') this.keypad = false;
      // Invokes the second or third character set.
      if (character === 'n' || character === 'o') this.noteCharset();
      if (character === 'c') this.reset();
      if (character === '7' || character === 'c') this.isSavedCursorLost = false;
      if (character === '8') this.wantSavedCursor();
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
      const prefix = parameters.startsWith('?') ? '?' : '';
      for (const mode of parameters.slice(prefix.length).split(';')) this.setMode(`${prefix}${mode}`, isSet);
    } else if (final === 'r' && /^[\d;]*$/.test(parameters)) this.region = /[1-9]/.test(parameters);
    else if (final === 'm' && parameters.startsWith('>')) this.keyResource(parameters.slice(1));
    else if (final === 'u' && parameters === '') this.wantSavedCursor();
    else if (final === 'u') this.keyboard(parameters);
    else if (final === 's' && parameters === '') this.isSavedCursorLost = false;
    else if (final === 'p' && parameters === '!') this.softReset();
    else if (final === 'q' && parameters.endsWith(' ')) this.note('cursor', /[1-9]/.test(parameters), '\x1b[0 q');
    else if (final === 'q' && parameters.endsWith('"')) this.note('protected', parameters === '1"', '\x1b[0"q');
  }

  private wantSavedCursor(): void {
    if (this.isSavedCursorLost) this.wasLostCursorWanted = true;
    this.isSavedCursorLost = false;
  }

  private setMode(mode: string, isSet: boolean): void {
    if (SAVING.includes(mode)) {
      if (isSet) this.isSavedCursorLost = false;
      else this.wantSavedCursor();
    }
    if (ALTERNATE.includes(mode)) this.alternate = isSet ? mode : null;
    else if (KEPT.includes(mode)) this.undo.set(mode, restoreMode(mode));
    else if (mode === '?66') this.keypad = isSet;
    // Some terminals move the cursor when it is reset.
    else if (mode === '?69') this.note('margins', isSet, '\x1b7\x1b[?69l\x1b8');
    else if (mode in EXPECTED) {
      if (isSet === EXPECTED[mode]) this.changed.delete(mode);
      else this.changed.add(mode);
    }
  }

  private note(name: string, isChanged: boolean, undo: string): void {
    if (isChanged) this.undo.set(name, undo);
    else this.undo.delete(name);
  }

  /** Tracks a keyboard resource: its number and value. Without a value it gets its default. */
  private keyResource(parameters: string): void {
    const [resource = '', value = ''] = parameters.split(';');
    if (/^[0-9]$/.test(resource) && /[1-9]/.test(value)) this.keyResources.add(resource);
    else if (resource === '') this.keyResources.clear();
    else this.keyResources.delete(resource);
  }

  private keyboard(parameters: string): void {
    const keyboard = this.isAlternate ? this.keyboards.alternate : this.keyboards.main;
    if (parameters.startsWith('>')) keyboard.depth += 1;
    if (parameters.startsWith('<')) keyboard.depth = Math.max(0, keyboard.depth - (Number(parameters.slice(1)) || 1));
    if (parameters.startsWith('=')) keyboard.isSet = !/^=0*(?:;1?)?$/.test(parameters);
  }

  /** Tracks an OSC: colours, links, pointer shape and progress. */
  private obeyString(text: string): void {
    const [number = '', ...rest] = text.split(';');
    const set = Number(number);
    const isQuery = rest.length > 0 && rest.at(-1) === '?';
    if (number === '8') this.note('link', rest.slice(1).join(';') !== '', '\x1b]8;;\x1b\\');
    else if (number === '22') this.note('pointer', rest.join(';') !== '' && !isQuery, '\x1b]22;\x1b\\');
    else if (number === '9' && rest[0] === '4') this.note('progress', rest[1] !== '0', '\x1b]9;4;0\x1b\\');
    else if (['4', '5'].includes(number) || (set >= 10 && set <= 19)) {
      if (!isQuery) this.note(`colour ${number}`, true, `\x1b]${100 + set}\x1b\\`);
    } else if (set >= 104 && set <= 119 && rest.join('') === '') this.undo.delete(`colour ${set - 100}`);
  }

  private softReset(): void {
    for (const mode of ['?25', '4']) this.changed.delete(mode);
    this.keypad = false;
    this.region = false;
    this.isSavedCursorLost = false;
  }
}

function newKeyboards(): { readonly main: Keyboard; readonly alternate: Keyboard } {
  return { main: { depth: 0, isSet: false }, alternate: { depth: 0, isSet: false } };
}

function keyboardOff({ depth, isSet }: Keyboard): string {
  return `${depth > 0 ? `\x1b[<${depth}u` : ''}${isSet ? '\x1b[=0u' : ''}`;
}
