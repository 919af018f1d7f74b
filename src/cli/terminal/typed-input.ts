/** Input of a session at this terminal: finds escapes such as `~.`, switches to raw mode, and forwards piped input. */
import { spawn } from 'node:child_process';
import type { TerminalSession } from '../../client/terminal/terminal-session.js';
import type { InputStream } from '../render/streams.js';
import { shownCharacter } from './session-options.js';

export type Escape = 'detach' | 'close' | 'redraw' | 'speed' | 'askPen' | 'suspend' | 'help';

export type Typed =
  | { readonly kind: 'bytes'; readonly bytes: Buffer }
  | { readonly kind: 'escape'; readonly escape: Escape };

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
  /** Escape character as a byte; null for none. */
  private readonly character: number | null;
  private atLineStart = true;
  /** True inside the sequence of a single key, such as `ESC [ 3 ~`. */
  private inKey = false;
  /** True after an escape character, before the key that decides its meaning. */
  private pending = false;
  private inPaste = false;
  /** Number of matched bytes of the paste marker. */
  private matched = 0;

  /** Creates a reader for an escape character of one byte, or null for none. */
  constructor(character: string | null) {
    this.character = character === null ? null : character.charCodeAt(0);
  }

  /**
   * Splits typed bytes into input and escapes. Escapes start at the beginning of a line, or with `isAnywhere` (for viewers)
   * anywhere, but never inside of a bracketed paste.
   */
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
      typed.push({ kind: 'escape', escape: wish });
    }
    if (kept.length > 0) typed.push({ kind: 'bytes', bytes: Buffer.from(kept) });
    return typed;
  }

  /** Handles a byte. Adds the bytes to send to `kept`, and returns an escape. */
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

const ESCAPES: readonly (readonly [key: string, meaning: string])[] = [
  ['.', 'detach: the session goes on'],
  ['K', 'end the session and its program'],
  ['r', 'redraw the screen'],
  ['s', 'show the round-trip time'],
  ['w', 'ask for the pen (a free pen is yours at once)'],
  ['^Z', 'suspend orch; fg comes back'],
  ['?', 'this'],
];

/** Returns the lines of the escape help. */
export function escapeHelp(character: string): readonly string[] {
  const shown = shownCharacter(character);
  return [
    'at the beginning of a line:',
    ...ESCAPES.map(([key, meaning]) => ` ${shown}${key}`.padEnd(6) + meaning),
    `${` ${shown}${shown}`.padEnd(6)}a ${shown} itself`,
  ];
}

/** Raw mode of the operator's terminal: passes each key, and leaves the output unprocessed. */
export class RawMode {
  private readonly stdin: InputStream;
  private raw = false;

  /** Creates the raw mode of `stdin`, which must be a terminal. */
  constructor(stdin: InputStream) {
    this.stdin = stdin;
  }

  /** Enters raw mode. Resolves once the terminal leaves the output unprocessed. */
  async enter(): Promise<void> {
    this.stdin.setRawMode?.(true);
    this.raw = true;
    await this.disableOutputProcessing();
  }

  leave(): void {
    if (!this.raw) return;
    this.raw = false;
    this.stdin.setRawMode?.(false);
  }

  /**
   * Switches off output processing: Node's raw mode still turns LF into CR LF, which full-screen programs do not expect. Systems
   * without `stty` keep that behaviour.
   */
  private async disableOutputProcessing(): Promise<void> {
    const { fd } = this.stdin;
    if (fd === undefined) return;
    const stty = spawn('stty', ['-opost'], { stdio: [fd, 'ignore', 'ignore'] });
    await new Promise<void>((resolve) => {
      stty.once('error', () => resolve());
      stty.once('close', () => resolve());
    });
    // Raw mode may have been left meanwhile.
    if (!this.raw) this.stdin.setRawMode?.(false);
  }
}

/** Input from a pipe or file for a terminal: all of it, then Ctrl-D. */
const CTRL_D = Buffer.of(0x04);
/** Milliseconds before the first Ctrl-D, and between further ones. */
const FIRST_PAUSE = 300;
const PAUSE = 1_000;

export class PipedInput {
  private readonly stdin: InputStream;
  private readonly session: TerminalSession;
  private timer: NodeJS.Timeout | null = null;

  constructor(stdin: InputStream, session: TerminalSession) {
    this.stdin = stdin;
    this.session = session;
  }

  begin(): void {
    this.stdin.on('data', this.take);
    this.stdin.once('end', this.end);
  }

  stop(): void {
    this.stdin.off('data', this.take);
    this.stdin.off('end', this.end);
    if (this.timer !== null) clearTimeout(this.timer);
  }

  /** Called when the session accepts input again. */
  drain(): void {
    this.stdin.resume();
  }

  private readonly take = (bytes: Buffer): void => {
    if (!this.session.sendInput(bytes)) this.stdin.pause();
  };

  /**
   * Sends Ctrl-D repeatedly: a starting shell loses the first one, one in the middle of a line only submits
   * the line, and nested shells take one each.
   */
  private readonly end = (): void => {
    const press = () => {
      this.session.sendInput(CTRL_D);
      this.timer = setTimeout(press, PAUSE);
    };
    this.timer = setTimeout(press, FIRST_PAUSE);
  };
}
