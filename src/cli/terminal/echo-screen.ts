/** Emulates the screen of the remote program, to know its cursor and the content of the cursor's line. */
import xterm from '@xterm/headless';
import { beginningAtEnd } from '../../terminal/recording/whole-characters.js';
import { type Core, coreOf } from '../../terminal/xterm-core.js';
import type { LineView } from './predictor.js';

/** Content of unknown cells; prediction stops next to them. */
const UNKNOWN = '\ue000';
const CR = 0x0d;
const NOTHING = Buffer.alloc(0);

export interface EchoScreenOptions {
  readonly cols: number;
  readonly rows: number;
  /** True if no output was shown before: the cursor is at the start of an empty line. */
  readonly isFresh: boolean;
}

export class EchoScreen implements LineView {
  private readonly terminal: xterm.Terminal;
  private readonly core: Core;
  private incomplete: Buffer = NOTHING;
  /** True if the column of the cursor is known. */
  private isPlaced: boolean;
  private scrolled = 0;

  constructor({ cols, rows, isFresh }: EchoScreenOptions) {
    this.terminal = new xterm.Terminal({ cols, rows, scrollback: 0, allowProposedApi: true, logLevel: 'off' });
    this.core = coreOf(this.terminal);
    this.terminal.onLineFeed(() => this.move());
    this.terminal.onScroll(() => this.move());
    this.isPlaced = isFresh;
    // The cursor is in the last line; the content of all cells is unknown.
    if (!isFresh) this.core._inputHandler.parse(Buffer.from(UNKNOWN.repeat(cols * rows)));
  }

  get line(): number {
    return this.scrolled * 1_024 + this.terminal.buffer.active.cursorY;
  }

  get col(): number {
    return this.terminal.buffer.active.cursorX;
  }

  get cols(): number {
    return this.terminal.cols;
  }

  get isPredictable(): boolean {
    const { buffer, modes } = this.terminal;
    const { bg } = this.core._inputHandler._curAttrData;
    // Erased cells would keep another background.
    const isPlain = (bg & COLOR_MODE) === 0 && !modes.insertMode && modes.wraparoundMode;
    return (
      this.isPlaced &&
      isPlain &&
      buffer.active.type === 'normal' &&
      this.incomplete.length === 0 &&
      this.col < this.cols
    );
  }

  write(bytes: Buffer): void {
    const all = this.incomplete.length === 0 ? bytes : Buffer.concat([this.incomplete, bytes]);
    const whole = all.length - beginningAtEnd(all);
    this.incomplete = Buffer.from(all.subarray(whole));
    this.core._inputHandler.parse(all.subarray(0, whole));
    this.isPlaced ||= bytes.includes(CR);
  }

  at(col: number): string {
    const cell = this.cell(col);
    return cell?.getWidth() === 1 ? cell.getChars() : UNKNOWN;
  }

  isPlainAt(col: number): boolean {
    const cell = this.cell(col);
    const { fg, bg } = this.core._inputHandler._curAttrData;
    return cell?.getWidth() === 1 && cell.isAttributeDefault() && fg === 0 && bg === 0;
  }

  private cell(col: number): ReturnType<NonNullable<ReturnType<xterm.IBuffer['getLine']>>['getCell']> {
    const { active } = this.terminal.buffer;
    return active.getLine(active.baseY + active.cursorY)?.getCell(col);
  }

  private move(): void {
    this.scrolled += 1;
  }
}

/** Bits of a background that select its colour mode; zero for the default. */
const COLOR_MODE = 0x3000000;
