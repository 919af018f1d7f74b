/** Each rule by which the predictor keeps a hidden key hidden, by itself: keys, cells and acknowledgements in, an overlay out. */
import { describe, expect, it } from 'vitest';
import { type LineView, Predictor } from '../../../../src/cli/terminal/predictor.js';
import type { Reading } from '../../../../src/terminal/frames.js';

/** A line of a terminal whose program draws plain characters. */
class Line implements LineView {
  line = 0;
  col = 0;
  readonly cols = 80;
  readonly isPredictable = true;
  private cells: readonly string[] = [];

  at(col: number): string {
    return this.cells[col] ?? '';
  }

  isPlainAt(): boolean {
    return true;
  }

  print(text: string): void {
    this.cells = [...this.cells.slice(0, this.col), ...text];
    this.col += text.length;
  }

  clear(): void {
    this.cells = [];
    this.col = 0;
  }
}

/** A person who types into a line editor, and the agent that looks at it. */
class Typing {
  readonly line = new Line();
  readonly predictor = new Predictor();
  private end = 0;
  private settled = 0;

  constructor() {
    this.look('keys');
  }

  type(keys: string): void {
    this.end += keys.length;
    this.predictor.type(keys, this.end, this.line);
  }

  paste(text: string): void {
    this.end += text.length;
    this.predictor.recordUnpredicted(this.end);
  }

  /** Output of the program. */
  print(text: string): void {
    this.line.print(text);
    this.predictor.drawn(this.line);
  }

  /** A look of the agent. Everything typed is given and settled, unless told otherwise. */
  look(reading: Reading, seen: { readonly given?: number; readonly settled?: number } = {}): void {
    const given = seen.given ?? this.end;
    this.settled = Math.max(seen.settled ?? given, this.settled);
    this.predictor.acknowledge({ given, settled: this.settled, output: 0, reading }, this.line);
  }

  /** Types keys that a line editor echoes, with a look before and after each. */
  edit(keys: string): void {
    for (const key of keys) {
      this.type(key);
      this.print(key);
      this.look('keys');
    }
  }

  /** Types a key and returns the characters that it shows at once. */
  shownBy(key: string): string {
    this.type(key);
    return (this.predictor.overlay(this.line)?.cells ?? []).map(({ text }) => text).join('');
  }
}

describe('a key', () => {
  it('is shown at once behind two neighbours that a line editor has echoed', () => {
    const typing = new Typing();
    typing.edit('ab');
    expect(typing.shownBy('c')).toBe('c');
  });

  it('is hidden behind a single one: a program may ask for one key and hide the next', () => {
    const typing = new Typing();
    typing.edit('a');
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden behind keys that came before the agent saw a line editor: the kernel may have echoed them', () => {
    const typing = new Typing();
    typing.look('lines');
    typing.type('a');
    typing.print('a');
    typing.type('b');
    typing.print('b');
    typing.look('keys');
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden behind keys that the program got before the last look but one', () => {
    const typing = new Typing();
    typing.look('lines');
    typing.type('ab');
    typing.look('keys', { settled: 0 });
    typing.print('ab');
    typing.look('keys');
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden behind keys that are drawn before the agent saw that the program got them', () => {
    const typing = new Typing();
    typing.type('ab');
    typing.look('keys', { given: 0 });
    typing.print('ab');
    expect(typing.shownBy('H')).toBe('');
  });

  it.each(['lines', 'hidden', 'unknown'] as const)('is hidden once the agent sees the terminal as %s', (reading) => {
    const typing = new Typing();
    typing.edit('ab');
    typing.look(reading);
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden after output that no key has caused: it may be a prompt', () => {
    const typing = new Typing();
    typing.edit('ab');
    // A bell draws nothing.
    typing.print('');
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden after a pause', () => {
    const typing = new Typing();
    typing.edit('ab');
    typing.predictor.rest();
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden behind the stars of a mask, whatever was typed', () => {
    const typing = new Typing();
    typing.edit('**');
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden once the line keeps nothing of the keys that were echoed', () => {
    const typing = new Typing();
    typing.edit('ab');
    typing.type('c');
    typing.line.clear();
    typing.print('');
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden while keys are in flight that were typed ahead of a prompt', () => {
    const typing = new Typing();
    typing.edit('ab');
    typing.type('\r');
    typing.line.line += 1;
    typing.line.clear();
    typing.type('cd');
    typing.look('keys', { settled: 0 });
    typing.print('cd');
    typing.look('keys', { settled: 0 });
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden while input is in flight that is not predicted, such as a paste', () => {
    const typing = new Typing();
    typing.edit('ab');
    typing.paste('cde');
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden behind keys that the program has taken out of the line and not echoed again', () => {
    const typing = new Typing();
    typing.look('lines');
    typing.type('ab');
    // The agent sees a line editor, but not before the kernel has echoed the keys.
    typing.look('keys', { settled: 0 });
    typing.print('ab');
    typing.look('keys');
    typing.type('\x7f\x7fab');
    typing.look('keys');
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden behind the same letters right of the cursor: they may be a suggestion', () => {
    const typing = new Typing();
    typing.type('ab');
    typing.line.print('ab');
    typing.line.col = 0;
    typing.look('keys', { settled: 0 });
    expect(typing.shownBy('H')).toBe('');
  });

  it('is hidden once the program has moved the cursor', () => {
    const typing = new Typing();
    typing.edit('ab');
    typing.type('c');
    typing.print('c');
    typing.line.col = 20;
    typing.look('keys');
    expect(typing.shownBy('H')).toBe('');
  });

  it('stays shown in place of an erased one while the echo of that one arrives', () => {
    const typing = new Typing();
    typing.edit('ab');
    typing.type('c\x7fd');
    typing.print('c');
    typing.look('keys', { settled: 2 });
    expect(typing.shownBy('e')).toBe('de');
  });
});
