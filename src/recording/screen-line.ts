/** One line as it is written: text that is appended, and overwritten where the cursor has gone back. */
import type { TextStyle } from './text-style.js';

export interface StyledText {
  readonly text: string;
  readonly style: TextStyle;
}

interface Cell {
  readonly text: string;
  readonly style: TextStyle;
}

/** Where a cursor may be sent. */
const LAST_COLUMN = 4_096;

export class ScreenLine {
  /** While text is only appended, runs of it; cells once the cursor has gone back. */
  private runs: StyledText[] = [];
  private cells: Cell[] | null = null;
  private column = 0;
  private length = 0;

  get isEmpty(): boolean {
    return this.length === 0;
  }

  /** UTF-16 code units, roughly. */
  get size(): number {
    return this.length;
  }

  print(text: string, style: TextStyle): void {
    if (this.isAtEnd) {
      this.runs.push({ text, style });
      this.length += text.length;
      this.column = this.length;
      return;
    }
    const cells = this.asCells(style);
    for (const character of text) {
      while (cells.length < this.column) cells.push({ text: ' ', style });
      cells[this.column] = { text: character, style };
      this.column += 1;
    }
    this.length = cells.length;
  }

  /** To that column, from 0. */
  moveTo(column: number, style: TextStyle): void {
    // Nearly every line ends with this and a line feed.
    if (column > 0) this.asCells(style);
    this.column = Math.min(Math.max(0, column), LAST_COLUMN);
  }

  moveBy(columns: number, style: TextStyle): void {
    this.asCells(style);
    this.moveTo(this.column + columns, style);
  }

  tab(style: TextStyle): void {
    if (this.isAtEnd) this.print('\t', style);
    else this.moveTo((Math.floor(this.column / 8) + 1) * 8, style);
  }

  /** `ESC [ how K`: 0 what follows the cursor, 1 what is up to it, 2 all. */
  erase(how: number, style: TextStyle): void {
    if (this.isAtEnd && how === 0) return;
    const cells = this.asCells(style);
    if (how === 0) cells.length = Math.min(cells.length, this.column);
    else this.blank(0, how === 1 ? this.column + 1 : cells.length, style);
    this.length = cells.length;
  }

  blank(from: number, to: number, style: TextStyle): void {
    const cells = this.asCells(style);
    for (let at = from; at < Math.min(to, cells.length); at += 1) cells[at] = { text: ' ', style };
  }

  eraseNext(count: number, style: TextStyle): void {
    this.asCells(style);
    this.blank(this.column, this.column + count, style);
  }

  deleteNext(count: number, style: TextStyle): void {
    const cells = this.asCells(style);
    cells.splice(this.column, count);
    this.length = cells.length;
  }

  insertBlanks(count: number, style: TextStyle): void {
    const cells = this.asCells(style);
    const blanks = Array.from({ length: Math.min(count, LAST_COLUMN) }, () => ({ text: ' ', style }));
    if (this.column < cells.length) cells.splice(this.column, 0, ...blanks);
    this.length = cells.length;
  }

  /** Without what is blank at the end. */
  get text(): string {
    let text = '';
    for (const piece of this.pieces()) text += piece.text;
    let end = text.length;
    while (text[end - 1] === ' ') end -= 1;
    return text.slice(0, end);
  }

  /** Pieces that differ in style. */
  pieces(): readonly StyledText[] {
    if (this.cells === null) return this.runs;
    const pieces: { text: string; style: TextStyle }[] = [];
    for (const { text, style } of this.cells) {
      const last = pieces.at(-1);
      if (last?.style === style) last.text += text;
      else pieces.push({ text, style });
    }
    return pieces;
  }

  /** Text that comes now is only appended. */
  private get isAtEnd(): boolean {
    return this.cells === null && this.column === this.length;
  }

  private asCells(style: TextStyle): Cell[] {
    if (this.cells === null) {
      const cells: Cell[] = [];
      for (const run of this.runs) {
        for (const text of run.text) {
          if (text !== '\t') cells.push({ text, style: run.style });
          else
            do cells.push({ text: ' ', style });
            while (cells.length % 8 !== 0);
        }
      }
      this.cells = cells;
      this.runs = [];
      if (this.column > 0) this.column = cells.length;
      this.length = cells.length;
    }
    return this.cells;
  }
}
