/**
 * Converts output to lines of text, without control sequences and overwritten text. A program that draws a screen produces one
 * line for each run of text that it writes.
 */
import { type ControlSequence, EscapeParser } from './escape-parser.js';
import { withoutUnseen } from './neutralizer.js';

export interface TextLine {
  /** Time at which the line began, in seconds since the start. */
  readonly at: number;
  readonly text: string;
  readonly pieces: readonly StyledText[];
}

/** Maximum length of a line in characters; longer lines are split. */
const MAX_LINE_LENGTH = 64 * 1024;

export class TextLines {
  private readonly parser: EscapeParser;
  private readonly isStyled: boolean;
  private line = new ScreenLine();
  private style: TextStyle = PLAIN;
  private startedAt: number | null = null;
  private at = 0;
  private done: TextLine[] = [];

  /** @param isStyled whether pieces carry their style; false is faster */
  constructor(isStyled = false) {
    this.isStyled = isStyled;
    this.parser = new EscapeParser({
      print: (text) => this.print(withoutUnseen(text)),
      control: (character) => this.control(character),
      escape: (intermediates, final) => {
        if (intermediates === '' && /^[DEMc]$/.test(final)) this.leave();
      },
      sequence: (sequence) => this.sequence(sequence),
    });
  }

  /** Takes output. Returns the lines that it completed. */
  write(at: number, text: string): readonly TextLine[] {
    this.at = at;
    this.parser.write(text);
    return this.take();
  }

  /** Returns the rest as lines. */
  end(): readonly TextLine[] {
    this.leave();
    return this.take();
  }

  private take(): readonly TextLine[] {
    const { done } = this;
    this.done = [];
    return done;
  }

  private print(text: string): void {
    if (text === '') return;
    this.startedAt ??= this.at;
    this.line.print(text, this.style);
    if (this.line.size > MAX_LINE_LENGTH) this.finish();
  }

  private control(character: string): void {
    if (character === '\n') this.finish();
    else if (character === '\v' || character === '\f') this.leave();
    else if (character === '\r') this.line.moveTo(0, this.style);
    else if (character === '\b') this.line.moveBy(-1, this.style);
    else if (character === '\t') this.line.tab(this.style);
  }

  private sequence({ prefix, params, intermediates, final }: ControlSequence): void {
    if (intermediates !== '') return;
    if (prefix !== '') {
      if (prefix === '?' && /[hl]/.test(final) && /(^|;)(47|104[79])(;|$)/.test(params)) this.leave();
      return;
    }
    const count = Math.max(1, Number.parseInt(params, 10) || 0);
    const { line, style } = this;
    if (final === 'm') {
      if (this.isStyled) this.style = params === '' || params === '0' ? PLAIN : applyStyle(style, params);
    } else if (final === 'K') line.erase(Number.parseInt(params, 10) || 0, style);
    else if (final === 'C' || final === 'a') line.moveBy(count, style);
    else if (final === 'D') line.moveBy(-count, style);
    else if (final === 'G' || final === '`') line.moveTo(count - 1, style);
    else if (final === 'P') line.deleteNext(count, style);
    else if (final === '@') line.insertBlanks(count, style);
    else if (final === 'X') line.eraseNext(count, style);
    else if (/^[ABEFHJLMSTdf]$/.test(final)) this.leave();
  }

  /** Ends the current line because the cursor moves to another one. */
  private leave(): void {
    if (!this.line.isEmpty) this.finish();
  }

  private finish(): void {
    const { text } = this.line;
    this.done.push({ at: this.startedAt ?? this.at, text, pieces: this.line.pieces() });
    this.line = new ScreenLine();
    this.startedAt = null;
  }
}

export interface StyledText {
  readonly text: string;
  readonly style: TextStyle;
}

interface Cell {
  readonly text: string;
  readonly style: TextStyle;
}

/** Last column that the cursor can move to. */
const LAST_COLUMN = 4_096;

/** One line while it is written: text is appended, or overwritten where the cursor moved back. */
export class ScreenLine {
  /** Runs of text while text is only appended; `cells` replaces them once the cursor moves back. */
  private runs: StyledText[] = [];
  private cells: Cell[] | null = null;
  private column = 0;
  private length = 0;

  get isEmpty(): boolean {
    return this.length === 0;
  }

  /** Approximate length in UTF-16 code units. */
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

  /** Moves the cursor to a column, counted from 0. */
  moveTo(column: number, style: TextStyle): void {
    // Most lines end with a carriage return and a line feed, so this keeps the runs.
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

  /** Handles `ESC [ how K`: erases 0 after the cursor, 1 up to the cursor, 2 the whole line. */
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

  /** Text without trailing blanks. */
  get text(): string {
    let text = '';
    for (const piece of this.pieces()) text += piece.text;
    let end = text.length;
    while (text[end - 1] === ' ') end -= 1;
    return text.slice(0, end);
  }

  /** Returns the text in pieces of one style each. */
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

  /** True while new text is only appended. */
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

/** One of the 256 terminal colours, or `#rrggbb`; null is the default colour. */
export type Color = number | string | null;

export interface TextStyle {
  readonly color: Color;
  readonly background: Color;
  readonly bold: boolean;
  readonly dim: boolean;
  readonly italic: boolean;
  readonly underlined: boolean;
  readonly struck: boolean;
  readonly inverse: boolean;
}

export const PLAIN: TextStyle = {
  color: null,
  background: null,
  bold: false,
  dim: false,
  italic: false,
  underlined: false,
  struck: false,
  inverse: false,
};

const SET: Readonly<Record<number, Partial<TextStyle>>> = {
  0: PLAIN,
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underlined: true },
  7: { inverse: true },
  9: { struck: true },
  21: { underlined: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underlined: false },
  27: { inverse: false },
  29: { struck: false },
  39: { color: null },
  49: { background: null },
};

/** Returns the style after `ESC [ params m`; `params` consists of digits, `;` and `:`. */
export function applyStyle(style: TextStyle, params: string): TextStyle {
  let next = style;
  const codes = params.split(';');
  for (let at = 0; at < codes.length; at += 1) {
    const [code = 0, ...parts] = (codes[at] ?? '').split(':').map(Number);
    if (code === 38 || code === 48) {
      const isLong = parts.length === 0;
      const rest = isLong ? codes.slice(at + 1, at + 5).map(Number) : parts;
      if (isLong) at += rest[0] === 5 ? 2 : 4;
      next = { ...next, [code === 38 ? 'color' : 'background']: extendedColor(rest, isLong) };
    } else {
      next = { ...next, ...(code === 4 && parts[0] === 0 ? { underlined: false } : (SET[code] ?? basicColor(code))) };
    }
  }
  return next;
}

function basicColor(code: number): Partial<TextStyle> {
  if (code >= 30 && code <= 37) return { color: code - 30 };
  if (code >= 40 && code <= 47) return { background: code - 40 };
  if (code >= 90 && code <= 97) return { color: code - 82 };
  return code >= 100 && code <= 107 ? { background: code - 92 } : {};
}

/** Parses `5;N`, `2;R;G;B`, and with colons `2:SPACE:R:G:B`. */
function extendedColor([kind, ...values]: readonly number[], isLong: boolean): Color {
  if (kind === 5) return within(values[0]);
  if (kind !== 2) return null;
  const [red, green, blue] = isLong || values.length < 4 ? values : values.slice(1);
  const hex = [red, green, blue].map((part) => (within(part) ?? 0).toString(16).padStart(2, '0'));
  return `#${hex.join('')}`;
}

const within = (value: number | undefined): number | null =>
  value !== undefined && Number.isInteger(value) && value >= 0 && value <= 255 ? value : null;

const BASIC = [
  ...['#000000', '#cd0000', '#00cd00', '#cdcd00', '#1e90ff', '#cd00cd', '#00cdcd', '#e5e5e5'],
  ...['#7f7f7f', '#ff0000', '#00ff00', '#ffff00', '#5c9dff', '#ff00ff', '#00ffff', '#ffffff'],
];
const LEVELS = [0, 95, 135, 175, 215, 255] as const;

/** Returns a colour as `#rrggbb`. */
export function hexOf(color: number | string): string {
  if (typeof color === 'string') return color;
  if (color < 16) return BASIC[color] ?? '#000000';
  const gray = 8 + (color - 232) * 10;
  const index = color - 16;
  const cube = [Math.floor(index / 36), Math.floor(index / 6) % 6, index % 6].map((step) => LEVELS[step] ?? 0);
  const parts = color < 232 ? cube : [gray, gray, gray];
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}
