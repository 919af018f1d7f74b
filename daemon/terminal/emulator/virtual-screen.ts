/** The screen of one terminal: what has been written to it, and its picture. It answers no query. */
import xterm from '@xterm/headless';
import { beginningAtEnd } from '../../../src/terminal/recording/whole-characters.js';
import { type Detail, paint } from './paint.js';
import { passingLines } from './passing-lines.js';
import { RESET, SHOW } from './reset.js';
import { type Restrained, restrain } from './restrain.js';
import { sgr } from './sgr.js';
import {
  type CharsetName,
  cursor,
  type LastCell,
  margins,
  modes,
  type Size,
  savedState,
  tabStops,
  UNSAVED,
} from './state.js';
import { createWidths } from './widths.js';
import { type Cell, type Core, coreOf, type ScreenBuffer, type WidthProvider } from './xterm-core.js';

/**
 * Lines that were wrapped stay as they are when the width changes: without scrollback the library loses rows over it. These
 * are what turns it off.
 */
export const NO_REFLOW = { windowsPty: { backend: 'winpty', buildNumber: 30_000 } } as const;

const CHARSETS = '0A4C5RQKYE6ZH7=';

/** What all screens of a thread share. */
export class ScreenMaker {
  private widths: WidthProvider | null = null;

  make(size: Size): VirtualScreen {
    const terminal = new xterm.Terminal({
      ...size,
      scrollback: 0,
      allowProposedApi: true,
      logLevel: 'off',
      ...NO_REFLOW,
    });
    const core = coreOf(terminal);
    this.widths ??= createWidths(core.unicodeService._activeProvider);
    terminal.unicode.register(this.widths);
    terminal.unicode.activeVersion = this.widths.version;
    return new VirtualScreen(terminal, core, this.widths);
  }
}

export class VirtualScreen {
  private readonly terminal: xterm.Terminal;
  private readonly core: Core;
  private readonly restrained: Restrained;
  private readonly nameOf: CharsetName;
  private torn: Buffer = Buffer.alloc(0);

  constructor(terminal: xterm.Terminal, core: Core, widths: WidthProvider) {
    this.terminal = terminal;
    this.core = core;
    this.nameOf = charsetNames(core);
    this.restrained = restrain(core, widths.wcwidth);
  }

  /** Bytes that were written and are not on the screen yet: the beginning of a character. */
  get pending(): number {
    return this.torn.length;
  }

  /**
   * Output that follows, a few kilobytes at most: memory for the longest piece is kept. The library is given whole characters:
   * some that come in two pieces it loses.
   */
  write(bytes: Uint8Array): void {
    const given = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const all = this.torn.length === 0 ? given : Buffer.concat([this.torn, given]);
    const whole = all.length - beginningAtEnd(all);
    this.torn = Buffer.from(all.subarray(whole));
    this.core._inputHandler.parse(all.subarray(0, whole));
  }

  /**
   * Deals with the beginning of a flood that scrolls out of the screen anyhow; what is behind it is to be written.
   * @returns its length in bytes
   */
  skim(bytes: Uint8Array): number {
    const { rows } = this.terminal;
    if (this.pending > 0) return 0;
    const passed = passingLines(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), this.core, rows);
    if (passed > 0) this.write(Buffer.from(`\r${'\n'.repeat(rows)}`));
    return passed;
  }

  resize(cols: number, rows: number): void {
    this.terminal.resize(cols, rows);
    const { normal, alt } = this.core.buffers;
    for (const { lines } of [normal, alt]) {
      // The library lets the alternate screen, while it is not shown, keep room for scrollback.
      if (lines.length === 0) lines.maxLength = this.terminal.rows;
      // It keeps what is beyond the margin, where deleting characters would bring it back.
      for (let row = 0; row < lines.length; row += 1) lines.get(row)?.resize(this.terminal.cols, this.newCell());
    }
  }

  dispose(): void {
    this.terminal.dispose();
  }

  /**
   * Bytes that make a terminal of the same size show this screen, at most so many: a huge screen that takes more is drawn
   * without the looks of its characters, and else not at all.
   */
  picture(longest: number): Buffer {
    for (const detail of ['full', 'plain'] as const) {
      const bytes = Buffer.from(this.draw(detail));
      if (bytes.length <= longest) return bytes;
    }
    return Buffer.from(this.draw('none'));
  }

  private draw(detail: Detail): string {
    const { core, nameOf } = this;
    const { cols, rows } = this.terminal;
    const size = { cols, rows };
    const { normal, alt, active } = core.buffers;
    const newCell = (): Cell => this.newCell();
    const screen = (buffer: ScreenBuffer): string =>
      paint(buffer, { ...size, newCell, detail }) +
      tabStops(buffer, size) +
      margins(buffer, size) +
      savedState(buffer, size, nameOf);
    // Going to the alternate screen saves the cursor.
    const other = active === alt ? `${screen(normal)}\x1b[?1049h${UNSAVED}\x1b[r\x1b[H\x1b[2J` : '';
    return [
      RESET,
      other,
      screen(active),
      `\x1b7${UNSAVED}`,
      cursor(active, core, size, this.lastCell(active, size)),
      modes(core, nameOf),
      this.title(),
      SHOW,
    ].join('');
  }

  private lastCell(buffer: ScreenBuffer, { cols }: Size): LastCell | null {
    const line = buffer.lines.get(buffer.ybase + buffer.y);
    if (line === undefined) return null;
    const cell = this.newCell();
    line.loadCell(cols - 1, cell);
    const isTail = cell.getWidth() === 0 && cell.getChars() === '';
    if (isTail) line.loadCell(cols - 2, cell);
    return { col: isTail ? cols - 2 : cols - 1, look: sgr(cell), chars: cell.getChars() || ' ' };
  }

  private newCell(): Cell {
    return this.terminal.buffer.active.getNullCell() as unknown as Cell;
  }

  private title(): string {
    const title = this.restrained.title();
    return title === null ? '' : `\x1b]2;${title.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')}\x1b\\`;
  }
}

/** The library keeps the tables of character sets without their names. */
function charsetNames(core: Core): CharsetName {
  const names = new Map<object, string>();
  for (const name of CHARSETS) {
    core._inputHandler.parse(Buffer.from(`\x1b(${name}`));
    const { charset } = core._charsetService;
    if (charset !== undefined) names.set(charset, name);
  }
  core._inputHandler.parse(Buffer.from('\x1bc'));
  return (charset) => (charset === undefined ? undefined : names.get(charset));
}
