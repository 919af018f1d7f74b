/** The sequences that bring a terminal after the reset, with the screen drawn, to the state of another: cursor, margins, modes. */
import { sgr } from './sgr.js';
import type { Core, ScreenBuffer } from './xterm-core.js';

/** The last character of the sequence that designates a character set; none for the standard one. */
export type CharsetName = (charset: object | undefined) => string | undefined;

const MOUSE: Readonly<Record<string, string>> = {
  X10: '\x1b[?9h',
  VT200: '\x1b[?1000h',
  DRAG: '\x1b[?1002h',
  ANY: '\x1b[?1003h',
};
const MOUSE_ENCODING: Readonly<Record<string, string>> = { SGR: '\x1b[?1006h', SGR_PIXELS: '\x1b[?1016h' };

/** Blinking; the steady one follows. */
const CURSOR_STYLE = { block: 1, underline: 3, bar: 5 } as const;

const DESIGNATORS = ['(', ')', '*', '+'] as const;
const SHIFTS = ['', '\x0e', '\x1bn', '\x1bo'] as const;

const to = (row: number, col: number): string => `\x1b[${row + 1};${col + 1}H`;

const within = (value: number, count: number): number => Math.min(Math.max(value, 0), count - 1);

/** Goes where the cursor was saved, in the looks and the character set of then. */
export function savedState(buffer: ScreenBuffer, { cols, rows }: Size, nameOf: CharsetName): string {
  const name = nameOf(buffer.savedCharset);
  const place = to(within(buffer.savedY - buffer.ybase, rows), within(buffer.savedX, cols));
  return `${place}${sgr(buffer.savedCurAttrData)}${name === undefined ? '' : `\x1b(${name}`}`;
}

/** Undoes the looks and the character set of `savedState`. */
export const UNSAVED = '\x1b(B\x1b[m';

export interface Size {
  readonly cols: number;
  readonly rows: number;
}

/** Tab stops, when they are not at every eighth column. */
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

/** Places the cursor; one that waits to wrap is there again only after the last character of the row. */
export function cursor(buffer: ScreenBuffer, core: Core, { cols, rows }: Size, lastCell: LastCell | null): string {
  const isOrigin = core.coreService.decPrivateModes.origin;
  const row = within(buffer.y, rows) - (isOrigin ? buffer.scrollTop : 0);
  const origin = isOrigin ? '\x1b[?6h' : '';
  if (buffer.x < cols || lastCell === null) return origin + to(row, within(buffer.x, cols));
  return origin + to(row, lastCell.col) + lastCell.look + lastCell.chars;
}

/** The last character of a row. */
export interface LastCell {
  readonly col: number;
  readonly look: string;
  readonly chars: string;
}

/** Looks, character sets and modes; nothing is drawn after it. */
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
