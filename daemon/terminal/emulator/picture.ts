/** Draws a screen as bytes for another terminal: reset, characters with their style, cursor, margins and modes. */
import type { Attributes, Cell, Core, ScreenBuffer } from '../../../src/terminal/xterm-core.js';

/** Characters with style, characters only, or nothing. */
export type Detail = 'full' | 'plain' | 'none';

interface PaintOptions {
  readonly cols: number;
  readonly rows: number;
  /** Returns a new cell to read into. */
  readonly newCell: () => Cell;
  readonly detail: Detail;
}

/** Characters that have the same width on every terminal. After others the cursor is positioned explicitly. */
const AGREED = /^[\x20-\u02ff\u0370-\u0482\u2500-\u259f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]$/u;

const isAgreed = (chars: string): boolean =>
  (chars.length === 1 && chars < '\x7f' && chars >= ' ') || AGREED.test(chars);

/** Bits of the background's colour and mode. Higher bits are flags. */
const BACKGROUND = 0x3ffffff;

export function paint(buffer: ScreenBuffer, { cols, rows, newCell, detail }: PaintOptions): string {
  if (detail === 'none') return '';
  const isPlain = detail === 'plain';
  const cell = newCell();
  const look = newCell();
  let hasLook = false;
  /** Column of the receiver's cursor; -1 when it is uncertain. */
  let at = -1;
  let text = '';

  const read = (row: number, col: number): Cell | null =>
    buffer.lines.get(buffer.ybase + row)?.loadCell(col, cell) ?? null;

  const select = (row: number, col: number): void => {
    if (isPlain || (hasLook && isSameLook(cell, look))) return;
    text += sgr(cell);
    buffer.lines.get(buffer.ybase + row)?.loadCell(col, look);
    hasLook = true;
  };

  const isWritten = (row: number, col: number): boolean => {
    const found = read(row, col);
    return found !== null && found.getWidth() === 1 && isAgreed(found.getChars());
  };
  const isWrapped = (row: number): boolean => buffer.lines.get(buffer.ybase + row)?.isWrapped ?? false;
  /** Reports whether the text of the previous row wraps into this one while it is drawn. */
  const runsOn = (row: number): boolean => isWrapped(row) && isWritten(row - 1, cols - 1) && isWritten(row, 0);

  const draw = (row: number, col: number, chars: string, width: number): void => {
    const isCertain = isAgreed(chars);
    if (at !== col || !isCertain) text += moveTo(row, col);
    select(row, col);
    text += chars;
    at = isCertain ? col + width : -1;
  };

  /** Draws a run of erased cells with one background. Returns its last column. */
  const erase = (row: number, col: number): number => {
    if (at !== col) text += moveTo(row, col);
    select(row, col);
    at = col;
    let last = col;
    while (last + 1 < cols) {
      const next = read(row, last + 1);
      if (next === null || next.getChars() !== '' || next.getWidth() === 0 || !isSameLook(next, look)) break;
      last += 1;
    }
    text += `\x1b[${last - col + 1}X`;
    return last;
  };

  const drawRow = (row: number): void => {
    at = runsOn(row) && at === cols ? 0 : -1;
    const line = buffer.lines.get(buffer.ybase + row);
    if (line === undefined) return;
    for (let col = 0; col < cols; col += 1) {
      const found = line.loadCell(col, cell);
      const chars = found.getChars();
      const width = found.getWidth();
      const isTail = width === 0 && chars === '' && col > 0 && line.getWidth(col - 1) === 2;
      const isCut = width === 2 && (line.getWidth(col + 1) !== 0 || col === cols - 1);
      if (isTail) continue;
      if (chars !== '' && !isCut) draw(row, col, chars, width);
      else if (!isPlain && (found.fg !== 0 || found.bg > BACKGROUND)) draw(row, col, ' ', 1);
      else if (!isPlain && found.bg !== 0) col = erase(row, col);
    }
  };

  // The first row continues a row that is gone, so a row is drawn before it and deleted.
  if (isWrapped(0) && rows > 1) text += `${moveTo(0, cols - 1)}  ${moveTo(0, 0)}\x1b[M\x1b[X`;
  // Marks a wrapped row with a character that wraps, and erases it.
  for (let row = 1; row < rows; row += 1) {
    if (!isWrapped(row) || runsOn(row)) continue;
    text += `${moveTo(row - 1, cols - 1)}  ${moveTo(row - 1, cols - 1)}\x1b[X${moveTo(row, 0)}\x1b[X`;
  }
  for (let row = 0; row < rows; row += 1) drawRow(row);
  return `${text}\x1b[m`;
}

/** Returns the final byte that designates a character set; undefined for the default set. */
export type CharsetName = (charset: object | undefined) => string | undefined;

const MOUSE: Readonly<Record<string, string>> = {
  X10: '\x1b[?9h',
  VT200: '\x1b[?1000h',
  DRAG: '\x1b[?1002h',
  ANY: '\x1b[?1003h',
};
const MOUSE_ENCODING: Readonly<Record<string, string>> = { SGR: '\x1b[?1006h', SGR_PIXELS: '\x1b[?1016h' };

/** Numbers of the blinking cursor styles. The steady style is one higher. */
const CURSOR_STYLE = { block: 1, underline: 3, bar: 5 } as const;

const DESIGNATORS = ['(', ')', '*', '+'] as const;
const SHIFTS = ['', '\x0e', '\x1bn', '\x1bo'] as const;

const moveTo = (row: number, col: number): string => `\x1b[${row + 1};${col + 1}H`;

const clamp = (value: number, count: number): number => Math.min(Math.max(value, 0), count - 1);

/** Moves to the saved cursor with its style and character set. */
export function savedState(buffer: ScreenBuffer, { cols, rows }: Size, nameOf: CharsetName): string {
  const name = nameOf(buffer.savedCharset);
  const place = moveTo(clamp(buffer.savedY - buffer.ybase, rows), clamp(buffer.savedX, cols));
  return `${place}${sgr(buffer.savedCurAttrData)}${name === undefined ? '' : `\x1b(${name}`}`;
}

/** Resets style and character set after `savedState`. */
export const UNSAVED = '\x1b(B\x1b[m';

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** Sets the tab stops when they differ from every eighth column. */
export function tabStops(buffer: ScreenBuffer, { cols }: Size): string {
  const columns = Array.from({ length: cols }, (_, col) => col);
  if (columns.every((col) => Boolean(buffer.tabs[col]) === (col % 8 === 0))) return '';
  const stops = columns.filter((col) => buffer.tabs[col]);
  return `\x1b[3g${stops.map((col) => `\x1b[${col + 1}G\x1bH`).join('')}`;
}

export function margins(buffer: ScreenBuffer, { rows }: Size): string {
  if (buffer.scrollTop === 0 && buffer.scrollBottom === rows - 1) return '';
  return `\x1b[${buffer.scrollTop + 1};${buffer.scrollBottom + 1}r`;
}

/** Places the cursor. A cursor that waits to wrap needs the last character of the row to be drawn again. */
export function cursor(buffer: ScreenBuffer, core: Core, { cols, rows }: Size, lastCell: LastCell | null): string {
  const isOrigin = core.coreService.decPrivateModes.origin;
  const row = clamp(buffer.y, rows) - (isOrigin ? buffer.scrollTop : 0);
  const origin = isOrigin ? '\x1b[?6h' : '';
  if (buffer.x < cols || lastCell === null) return origin + moveTo(row, clamp(buffer.x, cols));
  return origin + moveTo(row, lastCell.col) + lastCell.look + lastCell.chars;
}

/** Last character of a row. */
export interface LastCell {
  readonly col: number;
  readonly look: string;
  readonly chars: string;
}

/** Sets style, character sets and modes; must be last. */
export function modes(core: Core, nameOf: CharsetName): string {
  const { coreService, coreMouseService, options } = core;
  const { decPrivateModes: dec } = coreService;
  const when = (isSet: boolean, sequence: string): string => (isSet ? sequence : '');
  return [
    when(dec.applicationCursorKeys, '\x1b[?1h'),
    when(!dec.wraparound, '\x1b[?7l'),
    when(dec.reverseWraparound, '\x1b[?45h'),
    when(dec.applicationKeypad, '\x1b='),
    when(dec.sendFocus, '\x1b[?1004h'),
    when(dec.bracketedPasteMode, '\x1b[?2004h'),
    when(coreService.modes.insertMode, '\x1b[4h'),
    when(options.convertEol, '\x1b[20h'),
    MOUSE[coreMouseService.activeProtocol] ?? '',
    MOUSE_ENCODING[coreMouseService.activeEncoding] ?? '',
    cursorStyle(core),
    sgr(core._inputHandler._curAttrData),
    charsets(core, nameOf),
    when(!coreService.isCursorHidden, '\x1b[?25h'),
  ].join('');
}

function cursorStyle({ coreService, options }: Core): string {
  const { cursorStyle: style, cursorBlink: isBlinking } = coreService.decPrivateModes;
  const blink = options.cursorBlink ? '\x1b[?12h' : '';
  return style === undefined ? blink : `${blink}\x1b[${CURSOR_STYLE[style] + (isBlinking ? 0 : 1)} q`;
}

function charsets({ _charsetService: service }: Core, nameOf: CharsetName): string {
  const designated = DESIGNATORS.map((designator, level) => {
    const name = nameOf(service._charsets[level]);
    return name === undefined ? '' : `\x1b${designator}${name}`;
  });
  return designated.join('') + (SHIFTS[service.glevel] ?? '');
}

const INDEXED_16 = 0x1000000;
const INDEXED_256 = 0x2000000;
const RGB = 0x3000000;

const SINGLE_UNDERLINE = 1;

/** Returns the sequence (SGR) that selects the complete style. */
export function sgr(attributes: Attributes): string {
  const codes: (number | string)[] = [];
  if (attributes.isBold()) codes.push(1);
  if (attributes.isDim()) codes.push(2);
  if (attributes.isItalic()) codes.push(3);
  if (attributes.isUnderline()) codes.push(underline(attributes));
  if (attributes.isBlink()) codes.push(5);
  if (attributes.isInverse()) codes.push(7);
  if (attributes.isInvisible()) codes.push(8);
  if (attributes.isStrikethrough()) codes.push(9);
  if (attributes.isOverline()) codes.push(53);
  codes.push(...color(attributes.getFgColorMode(), attributes.getFgColor(), 30));
  codes.push(...color(attributes.getBgColorMode(), attributes.getBgColor(), 40));
  codes.push(...underlineColor(attributes));
  return codes.length === 0 ? '\x1b[m' : `\x1b[0;${codes.join(';')}m`;
}

/** Reports whether two cells have the same style. */
const isSameLook = (one: Attributes, other: Attributes): boolean =>
  one.fg === other.fg &&
  one.bg === other.bg &&
  one.extended.underlineStyle === other.extended.underlineStyle &&
  one.extended.underlineColor === other.extended.underlineColor;

/** @param base 30 for the foreground, 40 for the background */
function color(mode: number, value: number, base: 30 | 40): readonly number[] {
  switch (mode) {
    case INDEXED_16:
      return [value < 8 ? base + value : base + 60 + value - 8];
    case INDEXED_256:
      return [base + 8, 5, value];
    case RGB:
      return [base + 8, 2, (value >> 16) & 255, (value >> 8) & 255, value & 255];
    default:
      return [];
  }
}

/** Uses colons for styles beyond a single line, so that other terminals skip the whole parameter. */
function underline(attributes: Attributes): string {
  const style = attributes.getUnderlineStyle();
  return style <= SINGLE_UNDERLINE ? '4' : `4:${style}`;
}

/** Returns the underline colour; none when it is the colour of the text. */
function underlineColor({ extended }: Attributes): readonly string[] {
  const value = extended.underlineColor & 0xffffff;
  switch (extended.underlineColor & RGB) {
    case 0:
      return [];
    case RGB:
      return [`58:2::${value >> 16}:${(value >> 8) & 255}:${value & 255}`];
    default:
      return [`58:5:${value & 255}`];
  }
}

/**
 * Brings a terminal from any state, even inside a sequence, to an empty screen without margins and modes. A full reset would
 * flash and lose settings of the terminal's owner.
 */
export const RESET = [
  // Cancels a pending sequence.
  '\x18\x1b\\',
  // Synchronised output, where the terminal supports it.
  '\x1b[?2026h',
  // Normal screen, then soft reset: cursor keys, keypad, margins, insert, origin, style, saved cursor.
  '\x1b[?1049l\x1b[!p',
  '\x1b[?25l',
  '\x1b[?1;6;45;69l\x1b[?7h\x1b[4;20l\x1b>\x1b[r',
  // Mouse, focus, bracketed paste.
  '\x1b[?9;1000;1002;1003;1005;1006;1015;1016;1004;2004l',
  // Extended keyboard protocols.
  '\x1b[>4m\x1b[=0u',
  '\x1b[?12l\x1b[0 q',
  // Character sets, style.
  '\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[m',
  '\x1b[?5W\x1b[H\x1b[2J',
].join('');

/** Ends synchronised output. */
export const SHOW = '\x1b[?2026l';
