/**
 * Predicts what the keys that are on their way will do to the line of the cursor. Pure: keys, cells and acknowledgements in, an
 * overlay out.
 *
 * Predictions begin only where all input before them is settled, so never with keys that were typed ahead of a prompt. They are
 * made in silence until the program has echoed one of them while it reads keys itself: a prompt for a password never does, and
 * one character of a line that the kernel echoes says nothing about the next.
 */
import type { EchoAck } from '../../terminal/frames.js';

/** The line of the cursor as the program has drawn it. Columns count from zero. */
export interface LineView {
  /** Differs from that of another line, and of the same one after it was scrolled. */
  readonly line: number;
  readonly col: number;
  readonly cols: number;
  /** False where nothing may be drawn over what the program shows, as on the alternate screen. */
  readonly isPredictable: boolean;
  /** The character there, or '' for a cell that is empty. */
  at(col: number): string;
  /** Whether it looks like text without attributes, as far as the program's next character would. */
  isPlainAt(col: number): boolean;
}

/** What to show instead of what the program has drawn, in the line of its cursor. */
export interface Overlay {
  /** By column, ascending; '' for an empty cell. */
  readonly cells: readonly { readonly col: number; readonly text: string }[];
  /** Column of the cursor. */
  readonly cursor: number;
}

interface PredictedCell {
  readonly text: string;
  /** What stood there before. */
  readonly before: string;
  /** Another prediction for the cell came before. */
  readonly isSecond: boolean;
  /** Input offset behind the key. */
  readonly end: number;
}

/** How keys that were predicted have turned out. */
export interface PredictionCounts {
  readonly predicted: number;
  readonly right: number;
  readonly wrong: number;
}

/** ASCII and the Latin letters: one column wide in every terminal. */
const PREDICTABLE = /^[\x20-\x7e\u00a1-\u00ac\u00ae-\u024f]$/u;
/** A terminal sends one of them for the key that erases; programs take both. */
const ERASE = /^[\x7f\b]$/;
/** What no program shows in place of each character of a password. */
const TELLING = /^[a-wyzA-WYZ0-9\u00c0-\u024f]$/u;
/** Most characters of one line that are predicted. */
const MOST = 256;
const NONE = -1;

export class Predictor {
  private readonly cells = new Map<number, PredictedCell>();
  /** The line that the predictions are for; null while there are none. */
  private line: number | null = null;
  /** Where the first prediction in this line began: what is left of it belongs to the program. */
  private origin = 0;
  private col = 0;
  /** Input offset behind the last key. */
  private end = 0;
  private given = NONE;
  private settled = NONE;
  private isConfirmed = false;
  private readsKeys = false;
  /** Nothing is predicted before all that was typed is settled. */
  private isBlocked = true;
  private counted = { predicted: 0, right: 0, wrong: 0 };

  get counts(): PredictionCounts {
    return { ...this.counted };
  }

  /** Whether the program still has to answer a key. */
  get isWaiting(): boolean {
    return this.end > this.settled;
  }

  /**
   * Keys were sent.
   * @param end input offset behind them
   */
  type(keys: string, end: number, view: LineView): void {
    const characters = [...keys];
    let at = end - Buffer.byteLength(keys);
    for (const character of characters) {
      const isSynchronized = !this.isWaiting;
      at += Buffer.byteLength(character);
      if (this.isBlocked && isSynchronized) this.isBlocked = false;
      if (!this.isBlocked && this.line === null) {
        if (isSynchronized && view.isPredictable) this.begin(view);
        else this.block();
      }
      this.end = at;
      if (!this.isBlocked && !this.predict(character, at, view)) this.block();
    }
  }

  /** Something was typed that is not predicted, such as a paste. */
  typeUnpredictably(end: number): void {
    this.end = end;
    this.block();
  }

  acknowledge({ given, settled, reading }: EchoAck, view: LineView): void {
    this.given = Math.max(this.given, given);
    this.settled = Math.max(this.settled, settled);
    this.readsKeys = reading === 'keys';
    if (!this.readsKeys) this.block();
    this.judge(view);
  }

  /** The program has drawn something. */
  drawn(view: LineView): void {
    this.judge(view);
  }

  /** Forgets all; nothing is predicted before all that was typed is settled. */
  reset(): void {
    this.block();
    this.end = 0;
    this.given = NONE;
    this.settled = NONE;
  }

  /** Null when there is nothing to show that the program has not drawn. */
  overlay(view: LineView): Overlay | null {
    if (!this.isConfirmed || this.line !== view.line || !view.isPredictable) return null;
    const cells = [...this.cells]
      .filter(([col, { text }]) => view.at(col) !== text)
      .map(([col, { text }]) => ({ col, text }))
      .sort((one, other) => one.col - other.col);
    return cells.length === 0 && this.col === view.col ? null : { cells, cursor: this.col };
  }

  private begin(view: LineView): void {
    this.line = view.line;
    this.origin = view.col;
    this.col = view.col;
    this.isConfirmed = false;
  }

  /** Returns false for what it cannot tell. */
  private predict(character: string, end: number, view: LineView): boolean {
    if (view.line !== this.line || !view.isPredictable || this.cells.size >= MOST) return false;
    if (ERASE.test(character)) return this.erase(end, view);
    const { col } = this;
    if (!PREDICTABLE.test(character)) return false;
    // At the edge programs wrap lines in ways of their own.
    if (col + 2 >= view.cols || this.textAt(col, view) !== '' || this.textAt(col + 1, view) !== '') return false;
    this.put(col, character, end, view);
    this.col = col + 1;
    return true;
  }

  private erase(end: number, view: LineView): boolean {
    const col = this.col - 1;
    // What the program has drawn in another look could not be put back.
    if (col < this.origin || !(this.cells.has(col) || view.isPlainAt(col))) return false;
    if (this.textAt(col + 1, view) !== '') return false;
    this.put(col, '', end, view);
    this.col = col;
    return true;
  }

  private put(col: number, text: string, end: number, view: LineView): void {
    const earlier = this.cells.get(col);
    this.cells.set(col, { text, before: earlier?.before ?? view.at(col), isSecond: earlier !== undefined, end });
    this.counted.predicted += 1;
  }

  private textAt(col: number, view: LineView): string {
    return this.cells.get(col)?.text ?? view.at(col);
  }

  private judge(view: LineView): void {
    if (this.line === null) return;
    if (view.line !== this.line || !view.isPredictable) {
      // All is known of a line that was left with nothing in flight.
      if (this.isWaiting) this.block();
      else this.forget();
      return;
    }
    this.confirm(view);
    for (const [col, cell] of this.cells) {
      if (this.isWrong(cell, view.at(col))) {
        this.fail();
        return;
      }
      if (cell.end > this.settled) continue;
      this.cells.delete(col);
      this.counted.right += 1;
    }
    if (!this.isWaiting && view.col !== this.col) this.fail();
  }

  /** A cell is wrong when nothing has come of its key in time, and as soon as something else has. */
  private isWrong({ text, before, end, isSecond }: PredictedCell, shown: string): boolean {
    if (shown === text || end > this.given) return false;
    return end <= this.settled || (!isSecond && shown !== before);
  }

  /** A key whose character now stands in front of the cursor shows that the program echoes. */
  private confirm(view: LineView): void {
    if (this.isConfirmed || !this.readsKeys) return;
    const col = view.col - 1;
    const cell = this.cells.get(col);
    if (cell === undefined || cell.end > this.given || cell.text === cell.before) return;
    this.isConfirmed = TELLING.test(cell.text) && view.at(col) === cell.text;
  }

  private fail(): void {
    if (this.isConfirmed) this.counted.wrong += this.cells.size;
    this.block();
  }

  private block(): void {
    this.forget();
    this.isBlocked = true;
  }

  private forget(): void {
    this.cells.clear();
    this.line = null;
    this.isConfirmed = false;
  }
}

/**
 * Draws an overlay and takes it away again, both with moves within the line alone: neither the row of the cursor nor what the
 * program has saved needs to be known, and the program's next output finds the terminal as it left it.
 */
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
