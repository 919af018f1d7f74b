/** The state of a terminal as plain data for comparison. */
import type { Cell, Core, ScreenBuffer } from '../../../src/terminal/xterm-core.js';

/** The library leaves bits of a colour before in the number of an indexed one. */
const lineOf = (color: number): string => {
  const mode = color >> 24;
  return mode === 0 ? '' : `line ${mode} ${mode === 3 ? color & 0xffffff : color & 0xff}`;
};

const looksOf = (cell: Cell): string => {
  const flags = [
    cell.isBold() && 'bold',
    cell.isDim() && 'dim',
    cell.isItalic() && 'italic',
    cell.isUnderline() && `underline ${Math.max(cell.getUnderlineStyle(), 1)}`,
    cell.isUnderline() && lineOf(cell.extended.underlineColor),
    cell.isBlink() && 'blink',
    cell.isInverse() && 'inverse',
    cell.isInvisible() && 'invisible',
    cell.isStrikethrough() && 'struck',
    cell.isOverline() && 'overline',
    cell.getFgColorMode() && `fg ${cell.getFgColorMode() >> 24} ${cell.getFgColor()}`,
    cell.getBgColorMode() && `bg ${cell.getBgColorMode() >> 24} ${cell.getBgColor()}`,
  ];
  return flags.filter(Boolean).join(', ');
};

/** A blank is a blank, whether it was written or erased; of a wide character without its second half nothing is seen. */
function cellOf(cell: Cell, isCut: boolean): string {
  const chars = cell.getChars();
  const isBlank = chars === '' || chars === ' ' || isCut;
  const looks = looksOf(cell);
  return (isBlank ? ' ' : chars) + (looks === '' ? '' : `{${looks}}`);
}

function rowsOf(buffer: ScreenBuffer, cols: number, rows: number, newCell: () => Cell) {
  const cell = newCell();
  return Array.from({ length: rows }, (_, row) => {
    const line = buffer.lines.get(buffer.ybase + row);
    if (line === undefined) throw new Error(`there is no row ${row}`);
    const isCut = (col: number) => line.getWidth(col) === 2 && (col === cols - 1 || line.getWidth(col + 1) !== 0);
    const cells = Array.from({ length: cols }, (_, col) => cellOf(line.loadCell(col, cell), isCut(col)));
    return `${cells.join('').trimEnd()}${line.isWrapped && rows > 1 ? ' ↩' : ''}`;
  });
}

const savedOf = (buffer: ScreenBuffer, cols: number, rows: number) => ({
  x: Math.min(buffer.savedX, cols - 1),
  y: Math.min(Math.max(buffer.savedY - buffer.ybase, 0), rows - 1),
  looks: looksOf(buffer.savedCurAttrData as Cell),
  charset: buffer.savedCharset === undefined ? 'standard' : JSON.stringify(buffer.savedCharset),
});

const tabsOf = (buffer: ScreenBuffer, cols: number) =>
  Array.from({ length: cols }, (_, col) => col).filter((col) => buffer.tabs[col]);

export interface Shown {
  readonly core: Core;
  readonly cols: number;
  readonly rows: number;
  readonly newCell: () => Cell;
}

export type Looks = ReturnType<typeof looksOfTerminal>;

/** Everything that tells one terminal from another. */
export function looksOfTerminal({ core, cols, rows, newCell }: Shown) {
  const { normal, alt, active } = core.buffers;
  const { cursorBlink, ...options } = { cursorBlink: core.options.cursorBlink, newLine: core.options.convertEol };
  const { synchronizedOutput: _, ...dec } = core.coreService.decPrivateModes as Record<string, unknown>;
  const seen = active === alt ? [normal, alt] : [normal];
  return {
    screen: active === alt ? 'alternate' : 'normal',
    rows: seen.map((buffer) => rowsOf(buffer, cols, rows, newCell)),
    saved: seen.map((buffer) => savedOf(buffer, cols, rows)),
    tabs: seen.map((buffer) => tabsOf(buffer, cols)),
    margins: seen.map(({ scrollTop, scrollBottom }) => [scrollTop, scrollBottom]),
    cursor: { x: active.x, y: active.y, isHidden: core.coreService.isCursorHidden, isBlinking: cursorBlink },
    looks: looksOf(core._inputHandler._curAttrData as Cell),
    charset: [0, 1, 2, 3].map((level) => JSON.stringify(core._charsetService._charsets[level] ?? 'standard')),
    shift: core._charsetService.glevel,
    modes: { ...dec, ...core.coreService.modes, ...options },
    mouse: [core.coreMouseService.activeProtocol, core.coreMouseService.activeEncoding],
  };
}
