/**
 * Draws an overlay and takes it away again, both with moves within the line alone: neither the row of the cursor nor what the
 * program has saved needs to be known, and the program's next output finds the terminal as it left it.
 */
import type { LineView, Overlay } from './predictor.js';

export interface PaintedOverlay {
  readonly draw: string;
  readonly undo: string;
}

export function paintOverlay({ cells, cursor }: Overlay, view: LineView): PaintedOverlay {
  return {
    draw: paint(view.col, cells, cursor),
    undo: paint(
      cursor,
      cells.map(({ col }) => ({ col, text: view.at(col) })),
      view.col,
    ),
  };
}

function paint(from: number, cells: Overlay['cells'], to: number): string {
  let at = from;
  let painted = '';
  for (const { col, text } of cells) {
    painted += move(at, col) + (text === '' ? '\x1b[X' : text);
    at = text === '' ? col : col + 1;
  }
  return painted + move(at, to);
}

const move = (from: number, to: number): string =>
  from === to ? '' : from > to ? `\x1b[${from - to}D` : `\x1b[${to - from}C`;
