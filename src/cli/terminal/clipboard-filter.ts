/**
 * Protects the operator's clipboard: removes the control strings that set or read it (OSC 52, OSC 5522, and the
 * copy commands of OSC 50 and 1337) from terminal output, across chunk borders. All other bytes stay as they are.
 *
 * It looks for an OSC everywhere, also inside of other control strings, because GNU screen and tmux pass those on to the
 * outer terminal.
 */
import type { ClipboardChoice } from './session-options.js';

interface ClipboardFilterOptions {
  readonly clipboard: ClipboardChoice;
  /** Called for each removed control string. */
  onBlocked(): void;
}

/**
 * `ground`: outside of a sequence, or in an allowed string. `escape`: after ESC. `number`, `word`, `target` and `data`: the
 * parts of an OSC before the decision. `blocked`: inside of a removed string.
 */
type State = 'ground' | 'escape' | 'number' | 'word' | 'target' | 'data' | 'blocked';

const ESC = 0x1b;
const BEL = 0x07;
const CAN = 0x18;
const SUB = 0x1a;
const DEL = 0x7f;
/** OSC and ST in their 8-bit form. */
const OSC = 0x9d;
const ST = 0x9c;
const RIGHT_BRACKET = 0x5d;
const BACKSLASH = 0x5c;
const SEMICOLON = 0x3b;
const QUESTION_MARK = 0x3f;
/** The lead byte of U+0080 to U+00BF, and so of C1 in UTF-8. */
const C1_LEAD = 0xc2;
/** Maximum bytes of an undecided OSC; a longer one is removed. */
const LONGEST_HEAD = 256;
/** Maximum number of bytes before the last byte of a UTF-8 character. */
const LOOK_BACK = 3;
const COPY_COMMANDS = ['copy', 'endcopy'];
const NOTHING = Buffer.alloc(0);

export class ClipboardFilter {
  private readonly options: ClipboardFilterOptions;
  private state: State = 'ground';
  /** Bytes of the undecided sequence. */
  private held: number[] = [];
  private number = 0;
  private word = '';
  /** Last bytes of the previous chunk. */
  private before: Buffer = NOTHING;
  /** Allowed parts of the current chunk. */
  private passed: Buffer[] = [];

  constructor(options: ClipboardFilterOptions) {
    this.options = options;
  }

  /** Returns the allowed bytes. Holds back an undecided sequence. */
  write(bytes: Buffer): Buffer {
    for (let at = 0; at < bytes.length; ) {
      if (this.state === 'ground') at = this.pass(bytes, at);
      else if (this.step(bytes[at] as number)) at += 1;
    }
    this.before = Buffer.concat([this.before, bytes.subarray(-LOOK_BACK)]).subarray(-LOOK_BACK);
    const { passed } = this;
    this.passed = [];
    const [only = NOTHING] = passed;
    return passed.length <= 1 ? only : Buffer.concat(passed);
  }

  /** Passes all bytes before the next introducer and enters it. Returns the index after it. */
  private pass(bytes: Buffer, at: number): number {
    const found = this.nextIntroducer(bytes, at);
    if (found > at) this.passed.push(bytes.subarray(at, found));
    const introducer = bytes[found];
    if (introducer === undefined) return found;
    this.held = [introducer];
    if (introducer === ESC) this.state = 'escape';
    else this.beginString();
    return found + 1;
  }

  private nextIntroducer(bytes: Buffer, at: number): number {
    const next = bytes.indexOf(ESC, at);
    const end = next < 0 ? bytes.length : next;
    const rest = bytes.subarray(0, end);
    for (let found = rest.indexOf(OSC, at); found >= 0; found = rest.indexOf(OSC, found + 1)) {
      if (!this.isInCharacter(bytes, found)) return found;
    }
    return end;
  }

  /** Returns whether a possible C1 byte is part of a printable UTF-8 character. */
  private isInCharacter(bytes: Buffer, at: number): boolean {
    for (let back = 1; back <= LOOK_BACK; back += 1) {
      const byte = bytes[at - back] ?? this.before.at(at - back) ?? 0;
      if (byte >= 0xc0) return byte !== C1_LEAD && back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2);
      if (byte < 0x80) return false;
    }
    return false;
  }

  private beginString(): void {
    this.state = 'number';
    this.number = 0;
    this.word = '';
  }

  /** Handles a byte of a sequence. Returns false if the byte ended the sequence without being part of it. */
  private step(byte: number): boolean {
    const isPassedOver = byte < 0x20 || byte === DEL;
    if (byte === ESC) this.beginAgain();
    else if (byte === CAN || byte === SUB) this.release(byte);
    else if (this.state === 'blocked') this.skip(byte);
    else if (this.held.length >= LONGEST_HEAD) this.block();
    // Terminals disagree about the end of such a string, so the rest could still be a query.
    else if (this.state === 'target' && byte >= 0x80) this.block();
    else if (this.state !== 'escape' && (byte === BEL || byte === ST)) this.release(byte);
    else if (byte === OSC || (this.state === 'escape' && byte !== RIGHT_BRACKET && !isPassedOver)) {
      this.release();
      return false;
    } else {
      this.held.push(byte);
      // Terminals ignore control characters inside of a sequence.
      if (!isPassedOver) this.judge(byte);
    }
    return true;
  }

  private skip(byte: number): void {
    if (byte !== BEL && byte !== ST) return;
    // Without a terminator the text before and after the removed string could join into a sequence.
    this.held = [ESC, BACKSLASH];
    this.release();
  }

  private judge(byte: number): void {
    switch (this.state) {
      case 'escape':
        this.beginString();
        return;
      case 'number':
        this.judgeNumber(byte);
        return;
      case 'word':
        this.word += String.fromCharCode(byte).toLowerCase();
        if (COPY_COMMANDS.includes(this.word)) this.block();
        else if (!COPY_COMMANDS.some((command) => command.startsWith(this.word))) this.release();
        return;
      case 'target':
        if (byte === SEMICOLON) this.state = 'data';
        return;
      default:
        if (byte === QUESTION_MARK) this.block();
        else this.release();
    }
  }

  private judgeNumber(byte: number): void {
    const mayCopy = this.options.clipboard === 'copy';
    if (byte >= 0x30 && byte <= 0x39) this.number = Math.min(this.number * 10 + byte - 0x30, 1e6);
    else if (byte !== SEMICOLON) this.release();
    else if (this.number === 5522 || (this.number === 52 && !mayCopy)) this.block();
    else if (this.number === 52) this.state = 'target';
    else if ((this.number === 50 || this.number === 1337) && !mayCopy) this.state = 'word';
    else this.release();
  }

  /** Starts over at ESC, which aborts any sequence. */
  private beginAgain(): void {
    this.passed.push(Buffer.from(this.held));
    this.held = [ESC];
    this.state = 'escape';
  }

  private release(...more: number[]): void {
    this.passed.push(Buffer.from([...this.held, ...more]));
    this.held = [];
    this.state = 'ground';
  }

  private block(): void {
    this.held = [];
    this.state = 'blocked';
    this.options.onBlocked();
  }
}
