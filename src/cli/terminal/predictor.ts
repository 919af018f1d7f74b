/**
 * Predicts the effect of keys in flight on the line of the cursor. Pure: keys, cells and acknowledgements in, an
 * overlay out.
 *
 * Predictions start only once all earlier input is settled, so never with keys typed ahead of a prompt. They stay
 * hidden until the program has echoed two neighbours while it edits a line: a program that asks a question with a single
 * key echoes only one, and in kernel line mode the echo of one character says nothing about the next. An echo counts only
 * between two looks of the agent at a program that edits a line, because else the kernel may have echoed the key before.
 */
import type { EchoAck } from '../../terminal/frames.js';

/** The cursor's line as drawn by the program. Columns count from zero. */
export interface LineView {
  /** Identifies the line; changes when it scrolls. */
  readonly line: number;
  readonly col: number;
  readonly cols: number;
  /** False where no overlay may be drawn, as on the alternate screen. */
  readonly isPredictable: boolean;
  /** Returns the character in a column, or '' for an empty cell. */
  at(col: number): string;
  /** Returns whether the cell and the next character have default attributes. */
  isPlainAt(col: number): boolean;
}

/** Cells to draw over the cursor's line. */
interface Overlay {
  /** Cells by ascending column; '' for an empty cell. */
  readonly cells: readonly { readonly col: number; readonly text: string }[];
  /** Column of the cursor. */
  readonly cursor: number;
}

interface PredictedCell {
  readonly text: string;
  /** Content before the prediction. */
  readonly before: string;
  /** True if the cell had an earlier prediction. */
  readonly isSecond: boolean;
  /** Input offset after the key. */
  readonly end: number;
  /** True once the program got the key between two looks at a program that edits a line. */
  isWitnessed: boolean;
}

/** Numbers of predicted keys by result. */
export interface PredictionCounts {
  readonly predicted: number;
  readonly right: number;
  readonly wrong: number;
}

/** ASCII and Latin letters: one column wide in all terminals. */
const PREDICTABLE = /^[\x20-\x7e\u00a1-\u00ac\u00ae-\u024f]$/u;
/** Bytes of the erase key; programs accept both. */
const ERASE = /^[\x7f\b]$/;
/** Characters that no program shows as a password mask. */
const TELLING = /^[a-wyzA-WYZ0-9\u00c0-\u024f]$/u;
/** Maximum number of predicted cells. */
const MOST = 256;
const NONE = -1;

export class Predictor {
  private readonly cells = new Map<number, PredictedCell>();
  /** Line of the predictions; null if there are none. */
  private line: number | null = null;
  /** Column of the first prediction; columns to its left belong to the program. */
  private origin = 0;
  private col = 0;
  /** Input offset after the last key. */
  private end = 0;
  private given = NONE;
  private settled = NONE;
  /** Characters by column that the program has echoed in the line. */
  private readonly echoed = new Map<number, string>();
  private readsKeys = false;
  /** True while prediction waits for all input to settle. */
  private isBlocked = true;
  private counted = { predicted: 0, right: 0, wrong: 0 };

  get counts(): PredictionCounts {
    return { ...this.counted };
  }

  /** True while input is not settled. */
  get isWaiting(): boolean {
    return this.end > this.settled;
  }

  /**
   * Predicts sent keys.
   * @param end input offset after them
   */
  type(keys: string, end: number, view: LineView): void {
    let at = end - Buffer.byteLength(keys);
    for (const character of keys) {
      at += Buffer.byteLength(character);
      if (!this.isWaiting) this.isBlocked = false;
      // While input is in flight, a line is forgotten only together with a block.
      if (!this.isBlocked && this.line === null) this.begin(view);
      this.end = at;
      if (!this.isBlocked && !this.predict(character, at, view)) this.block();
    }
  }

  /** Records input that is not predicted, such as a paste. */
  recordUnpredicted(end: number): void {
    this.end = end;
    this.block();
  }

  acknowledge({ given, settled, reading }: EchoAck, view: LineView): void {
    const before = this.given;
    const readKeys = this.readsKeys;
    this.given = Math.max(this.given, given);
    this.settled = Math.max(this.settled, settled);
    this.readsKeys = reading === 'keys';
    if (!this.readsKeys) this.block();
    else if (readKeys) this.witness(before);
    this.compare(view);
  }

  /** Compares the predictions with new output. Output that no key has caused ends the line: it may be a prompt. */
  drawn(view: LineView): void {
    if (this.isWaiting) this.compare(view);
    else this.forget();
  }

  /** Ends the line after a pause in typing, unless keys are in flight. */
  rest(): void {
    if (!this.isWaiting) this.forget();
  }

  /** Forgets all predictions. Prediction resumes once all input is settled. */
  reset(): void {
    this.block();
    this.end = 0;
    this.given = NONE;
    this.settled = NONE;
  }

  /** Returns the cells to draw; null if the program has drawn them all. */
  overlay(view: LineView): Overlay | null {
    if (!this.isConfirmed(view) || this.line !== view.line || !view.isPredictable) return null;
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
  }

  /** Predicts a key. Returns false if its effect is unknown. */
  private predict(character: string, end: number, view: LineView): boolean {
    if (view.line !== this.line || !view.isPredictable || this.cells.size >= MOST) return false;
    if (ERASE.test(character)) return this.erase(end, view);
    const { col } = this;
    if (!PREDICTABLE.test(character)) return false;
    // At the edge, programs wrap lines in different ways.
    if (col + 2 >= view.cols || this.textAt(col, view) !== '' || this.textAt(col + 1, view) !== '') return false;
    this.put(col, character, end, view);
    this.col = col + 1;
    return true;
  }

  private erase(end: number, view: LineView): boolean {
    const col = this.col - 1;
    // A cell with attributes could not be restored.
    if (col < this.origin || !(this.cells.has(col) || view.isPlainAt(col))) return false;
    if (this.textAt(col + 1, view) !== '') return false;
    this.put(col, '', end, view);
    this.col = col;
    return true;
  }

  private put(col: number, text: string, end: number, view: LineView): void {
    const earlier = this.cells.get(col);
    const before = earlier?.before ?? view.at(col);
    this.cells.set(col, { text, before, isSecond: earlier !== undefined, end, isWitnessed: false });
    this.counted.predicted += 1;
  }

  private textAt(col: number, view: LineView): string {
    return this.cells.get(col)?.text ?? view.at(col);
  }

  private compare(view: LineView): void {
    if (this.line === null) return;
    if (view.line !== this.line || !view.isPredictable) {
      // A line without input in flight is settled.
      if (this.isWaiting) this.block();
      else this.forget();
      return;
    }
    this.noteEchoes(view);
    for (const [col, cell] of this.cells) {
      if (this.isWrong(cell, view.at(col))) {
        this.fail(view);
        return;
      }
      if (cell.end > this.settled) continue;
      this.cells.delete(col);
      this.counted.right += 1;
    }
    if (!this.isWaiting && view.col !== this.col) this.fail(view);
  }

  /** Returns whether a prediction is wrong: its key settled without the character, or another character appeared. */
  private isWrong({ text, before, end, isSecond }: PredictedCell, shown: string): boolean {
    if (shown === text || end > this.given) return false;
    return end <= this.settled || (!isSecond && shown !== before);
  }

  /** Marks the keys that the program got between the last look at it and this one. */
  private witness(before: number): void {
    for (const cell of this.cells.values()) {
      if (cell.end > before && cell.end <= this.given) cell.isWitnessed = true;
    }
  }

  /** Notes the keys whose characters the program has drawn before the cursor. */
  private noteEchoes(view: LineView): void {
    for (const [col, { text, before, isWitnessed }] of this.cells) {
      const isDrawn = col < view.col && view.at(col) === text && text !== before;
      if (isWitnessed && isDrawn && TELLING.test(text)) this.echoed.set(col, text);
    }
  }

  /** Returns whether the line still shows two neighbours that the program has echoed. */
  private isConfirmed(view: LineView): boolean {
    const isShown = (col: number) => this.echoed.get(col) === view.at(col);
    return [...this.echoed.keys()].some((col) => isShown(col) && isShown(col + 1));
  }

  private fail(view: LineView): void {
    if (this.isConfirmed(view)) this.counted.wrong += this.cells.size;
    this.block();
  }

  private block(): void {
    this.forget();
    this.isBlocked = true;
  }

  private forget(): void {
    this.cells.clear();
    this.line = null;
    this.echoed.clear();
  }
}

/**
 * Sequences that draw an overlay and remove it. Both move within the line only: they depend neither on the cursor's row nor on
 * a saved cursor, and leave the terminal as the program's next output expects it.
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
