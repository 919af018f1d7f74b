/** The emulated screen of one terminal and its picture. It answers no queries. */
import xterm from '@xterm/headless';
import { beginningAtEnd } from '../../../src/terminal/recording/whole-characters.js';
import {
  type Cell,
  type Core,
  coreOf,
  type ScreenBuffer,
  type WidthProvider,
} from '../../../src/terminal/xterm-core.js';
import { type LimitedOutput, limitOutput, passingLines } from './output-limits.js';
import {
  type CharsetName,
  cursor,
  type Detail,
  type LastCell,
  margins,
  modes,
  paint,
  RESET,
  SHOW,
  type Size,
  savedState,
  sgr,
  tabStops,
  UNSAVED,
} from './picture.js';

/**
 * Options that disable reflow of wrapped lines when the width changes, because xterm without scrollback loses rows by it.
 */
export const NO_REFLOW = { windowsPty: { backend: 'winpty', buildNumber: 30_000 } } as const;

const CHARSETS = '0A4C5RQKYE6ZH7=';

/** Creates screens, which share the table of widths. */
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
  private readonly limited: LimitedOutput;
  private readonly nameOf: CharsetName;
  private incomplete: Buffer = Buffer.alloc(0);

  constructor(terminal: xterm.Terminal, core: Core, widths: WidthProvider) {
    this.terminal = terminal;
    this.core = core;
    this.nameOf = charsetNames(core);
    this.limited = limitOutput(core, { widthOf: widths.wcwidth, scratch: this.newCell() });
  }

  /** Number of written bytes that are not on the screen yet: an incomplete character. */
  get pending(): number {
    return this.incomplete.length;
  }

  /**
   * Writes output, a few kilobytes at most, because xterm keeps memory for the longest piece. Passes on only complete characters,
   * because xterm loses some split ones.
   */
  write(bytes: Uint8Array): void {
    const given = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const all = this.incomplete.length === 0 ? given : Buffer.concat([this.incomplete, given]);
    const whole = all.length - beginningAtEnd(all);
    this.incomplete = Buffer.from(all.subarray(whole));
    this.core._inputHandler.parse(all.subarray(0, whole));
  }

  /**
   * Skips the start of a flood that scrolls out of the screen unseen. The caller writes the rest.
   * @returns the number of skipped bytes
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
      // xterm keeps room for scrollback in a hidden alternate screen.
      if (lines.length === 0) lines.maxLength = this.terminal.rows;
      // xterm keeps cells beyond the margin, which deleting characters would bring back.
      for (let row = 0; row < lines.length; row += 1) lines.get(row)?.resize(this.terminal.cols, this.newCell());
    }
  }

  dispose(): void {
    this.terminal.dispose();
  }

  /**
   * Returns at most `longest` bytes that draw this screen on a terminal of the same size. A screen that needs more is drawn without
   * styles, or not at all.
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
    // Switching to the alternate screen saves the cursor.
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
    const title = this.limited.title();
    return title === null ? '' : `\x1b]2;${title.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')}\x1b\\`;
  }
}

/** Learns the names of character sets, which xterm does not keep. */
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

const FIRST = 0x2300;
const LAST = 0x1ffff;

/** Reports whether a code point is between the two ranges of emoji. */
const isInGap = (codepoint: number): boolean => codepoint >= 0x2c00 && codepoint < 0x1f000;

function wideEmoji(): ReadonlySet<number> {
  const wide = new Set<number>();
  for (let codepoint = FIRST; codepoint <= LAST; codepoint += 1) {
    if (!isInGap(codepoint) && /\p{Emoji_Presentation}/u.test(String.fromCodePoint(codepoint))) wide.add(codepoint);
  }
  return wide;
}

/** Returns the widths of xterm, with emoji two columns wide like in terminals. @param base widths of all other characters */
export function createWidths(base: Pick<WidthProvider, 'wcwidth'>): WidthProvider {
  const wide = wideEmoji();
  const wcwidth = (codepoint: number): 0 | 1 | 2 =>
    codepoint >= FIRST && wide.has(codepoint) ? 2 : base.wcwidth(codepoint);
  return {
    version: 'orch',
    wcwidth,
    // Bit 0: the character joins the previous cell. Bits 1 and 2: width of the cell.
    charProperties(codepoint, preceding) {
      const width = wcwidth(codepoint);
      const before = (preceding >> 1) & 3;
      return width === 0 && before > 0 ? (before << 1) | 1 : width << 1;
    },
  };
}
