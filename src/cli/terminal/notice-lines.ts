/** Puts what we have to say onto a screen that a program is using. */
import { widthOf } from '../render/width.js';

/** The texts in lines of at most that many columns, broken between words where there are some. */
export function wrapLines(texts: readonly string[], columns: number): readonly string[] {
  return texts.flatMap((text) => wrapLine(text, columns));
}

function wrapLine(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/(?<= )/u)) {
    if (line !== '' && widthOf((line + word).trimEnd()) > columns) {
      lines.push(line.trimEnd());
      line = '  ';
    }
    line += word;
  }
  return [...lines, line];
}

/**
 * Inserts lines above the one that the cursor is in, which moves down with all that is in it: a prompt stays whole. The cursor
 * has to have room for so many lines on the screen. Overwrites the saved cursor.
 */
export function aboveCursor(lines: readonly string[]): string {
  const { length } = lines;
  // Down and up again: at the lower edge that scrolls, so that there are free lines below in any case.
  const room = '\x1bD'.repeat(length) + '\x1bM'.repeat(length);
  return `${room}\x1b7\x1b[0m\r\x1b[${length}L${lines.join('\r\n')}\x1b8\x1b[${length}B`;
}

/** Lays lines over the top of the screen, with the cursor where it was. Overwrites the saved cursor. */
export function overScreen(lines: readonly string[]): string {
  const drawn = lines.map((line, index) => `\x1b[${index + 1};1H\x1b[0;7m${line}\x1b[K`).join('');
  return `\x1b7${drawn}\x1b[0m\x1b8`;
}
