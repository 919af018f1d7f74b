import { spawn } from 'node:child_process';
import type { TerminalSession } from '../../client/terminal/terminal-session.js';
import type { InputStream } from '../render/printer.js';
import { shownCharacter } from './session-options.js';

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

/** What `~?` says. */
const ESCAPES: readonly (readonly [key: string, meaning: string])[] = [
  ['.', 'detach: the session goes on'],
  ['K', 'end the session and its program'],
  ['r', 'draw the screen anew'],
  ['s', 'how long the way there and back takes'],
  ['w', 'ask for the pen: a free one is yours at once'],
  ['^Z', 'suspend orch; fg comes back'],
  ['?', 'this'],
];

/** One line each. @param character that begins escapes */
export function escapeHelp(character: string): readonly string[] {
  const shown = shownCharacter(character);
  return [
    'at the beginning of a line:',
    ...ESCAPES.map(([key, meaning]) => ` ${shown}${key}`.padEnd(6) + meaning),
    `${` ${shown}${shown}`.padEnd(6)}a ${shown} itself`,
  ];
}

/** The raw mode of the terminal that one types at: every key goes through, and nothing is done to what is shown. */
export class RawMode {
  private readonly stdin: InputStream;
  private raw = false;

  /** @param stdin a terminal */
  constructor(stdin: InputStream) {
    this.stdin = stdin;
  }

  /** Resolves when the terminal does nothing to the output any more. */
  async enter(): Promise<void> {
    this.stdin.setRawMode?.(true);
    this.raw = true;
    await this.leaveOutputAlone();
  }

  leave(): void {
    if (!this.raw) return;
    this.raw = false;
    this.stdin.setRawMode?.(false);
  }

  /**
   * Node's raw mode still puts a carriage return before each line feed, which full-screen programs do not expect. A system
   * without `stty` has to live with it.
   */
  private async leaveOutputAlone(): Promise<void> {
    const { fd } = this.stdin;
    if (fd === undefined) return;
    const stty = spawn('stty', ['-opost'], { stdio: [fd, 'ignore', 'ignore'] });
    await new Promise<void>((resolve) => {
      stty.once('error', () => resolve());
      stty.once('close', () => resolve());
    });
    // It may have been left while that ran.
    if (!this.raw) this.stdin.setRawMode?.(false);
  }
}

/** Input for a terminal that comes from a pipe or a file: all of it, then Ctrl-D, as somebody at the keys would end it. */
const CTRL_D = Buffer.of(0x04);
/** How long the program has to get to its input, in milliseconds. */
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

  /** There is room again. */
  drain(): void {
    this.stdin.resume();
  }

  private readonly take = (bytes: Buffer): void => {
    if (!this.session.sendInput(bytes)) this.stdin.pause();
  };

  /**
   * Again and again: a shell that is only starting loses the first one, the first one in the middle of a line only hands in what
   * is there, and of shells within shells each takes one.
   */
  private readonly end = (): void => {
    const press = () => {
      this.session.sendInput(CTRL_D);
      this.timer = setTimeout(press, PAUSE);
    };
    this.timer = setTimeout(press, FIRST_PAUSE);
  };
}
