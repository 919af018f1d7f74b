/**
 * Output as lines of text: control sequences are gone, and what was written over is gone too. A program that draws a screen
 * gives a line for each stretch that it has written.
 */
import { type ControlSequence, EscapeParser } from './escape-parser.js';
import { withoutUnseen } from './neutralizer.js';
import { ScreenLine, type StyledText } from './screen-line.js';
import { applyStyle, PLAIN, type TextStyle } from './text-style.js';

export interface TextLine {
  /** Seconds from the start, when it was begun. */
  readonly at: number;
  readonly text: string;
  readonly pieces: readonly StyledText[];
}

/** A line that grows longer is cut there. */
const LONGEST = 64 * 1024;

export class TextLines {
  private readonly parser: EscapeParser;
  private readonly isStyled: boolean;
  private line = new ScreenLine();
  private style: TextStyle = PLAIN;
  private begunAt: number | null = null;
  private at = 0;
  private done: TextLine[] = [];

  /** @param isStyled false when the pieces need no looks, which is faster */
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

  /** The lines that are whole now. */
  write(at: number, text: string): readonly TextLine[] {
    this.at = at;
    this.parser.write(text);
    return this.take();
  }

  /** What is left at the end. */
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
    this.begunAt ??= this.at;
    this.line.print(text, this.style);
    if (this.line.size > LONGEST) this.finish();
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

  /** The cursor goes to another line: what was written to this one is a line. */
  private leave(): void {
    if (!this.line.isEmpty) this.finish();
  }

  private finish(): void {
    const { text } = this.line;
    this.done.push({ at: this.begunAt ?? this.at, text, pieces: this.line.pieces() });
    this.line = new ScreenLine();
    this.begunAt = null;
  }
}
