/** The sequences that draw the characters of a screen on one that is empty, with the margins and modes as after a reset. */
import { isSameLook, sgr } from './sgr.js';
import type { Cell, ScreenBuffer } from './xterm-core.js';

/** Characters with their looks, characters alone, or nothing. */
export type Detail = 'full' | 'plain' | 'none';

export interface PaintOptions {
  readonly cols: number;
  readonly rows: number;
  /** New cells to read into. */
  readonly newCell: () => Cell;
  readonly detail: Detail;
}

/** Characters of which every terminal knows how wide they are. After others the column is named. */
const AGREED = /^[\x20-\u02ff\u0370-\u0482\u2500-\u259f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]$/u;

const isAgreed = (chars: string): boolean =>
  (chars.length === 1 && chars < '\x7f' && chars >= ' ') || AGREED.test(chars);

/** Colour and mode of the background; what is above them are flags. */
const BACKGROUND = 0x3ffffff;

const to = (row: number, col: number): string => `\x1b[${row + 1};${col + 1}H`;

export function paint(buffer: ScreenBuffer, { cols, rows, newCell, detail }: PaintOptions): string {
  if (detail === 'none') return '';
  const isPlain = detail === 'plain';
  const cell = newCell();
  const look = newCell();
  let hasLook = false;
  /** Where the receiver's cursor is; no column when that is not certain. */
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
  /** The text of the row before runs on into this one as it is drawn. */
  const runsOn = (row: number): boolean => isWrapped(row) && isWritten(row - 1, cols - 1) && isWritten(row, 0);

  const draw = (row: number, col: number, chars: string, width: number): void => {
    const isCertain = isAgreed(chars);
    if (at !== col || !isCertain) text += to(row, col);
    select(row, col);
    text += chars;
    at = isCertain ? col + width : -1;
  };

  /** An erased cell has nothing but a background. Tells the last of those that look the same. */
  const erase = (row: number, col: number): number => {
    if (at !== col) text += to(row, col);
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

  // The row that the first one goes on with is gone: so is the one that is made here for it.
  if (isWrapped(0) && rows > 1) text += `${to(0, cols - 1)}  ${to(0, 0)}\x1b[M\x1b[X`;
  // A row that goes on with the one before is told so by a character that wraps, which is then erased.
  for (let row = 1; row < rows; row += 1) {
    if (!isWrapped(row) || runsOn(row)) continue;
    text += `${to(row - 1, cols - 1)}  ${to(row - 1, cols - 1)}\x1b[X${to(row, 0)}\x1b[X`;
  }
  for (let row = 0; row < rows; row += 1) drawRow(row);
  return `${text}\x1b[m`;
}
