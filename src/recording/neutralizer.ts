/** Makes recorded output harmless for the terminal that replays it: it still draws, and does nothing else. */
import { type ControlSequence, EscapeParser } from './escape-parser.js';
import { harmlessEscape, harmlessModes, harmlessSequence } from './harmless-sequence.js';

/** Tab, line ends, back space and the two character sets that lines are drawn with. */
const CONTROLS = new Set('\b\t\n\v\f\r\x0e\x0f');

/**
 * Characters that nobody sees and that reorder what is seen, hide text, or end lines where others see none. Joiners and
 * variation selectors stay: letters and emoji are made with them. Halves of characters would make whole ones of what is left.
 */
const UNSEEN =
  /[\p{Cs}\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]/gu;

/** Text without what is unseen and misleading. */
export const withoutUnseen = (text: string): string => text.replace(UNSEEN, '');

export class Neutralizer {
  private readonly parser: EscapeParser;
  private out = '';
  /** Private modes that were set and not reset. */
  private readonly set = new Set<string>();

  constructor() {
    this.parser = new EscapeParser({
      print: (text) => this.put(withoutUnseen(text)),
      control: (character) => this.put(CONTROLS.has(character) ? character : ''),
      escape: (intermediates, final) => this.put(harmlessEscape(intermediates, final)),
      sequence: (sequence) => this.sequence(sequence),
    });
  }

  /** The harmless part of what follows; a sequence that has only begun is kept until it is whole. */
  write(text: string): string {
    this.parser.write(text);
    const { out } = this;
    this.out = '';
    return out;
  }

  /** What undoes everything that was let through, but what is drawn: to be written when the replay ends. */
  undo(): string {
    const screens = ['1049', '1047', '47'].filter((mode) => this.set.has(mode));
    const modes = ['6', '69', '5', '45', ...screens].filter((mode) => this.set.has(mode));
    return `${modes.map((mode) => `\x1b[?${mode}l`).join('')}\x1b7\x1b[r\x1b8\x1b[4l\x1b[?7h\x1b[?25h\x1b[0 q\x1b[m\x1b(B\x0f`;
  }

  private sequence(sequence: ControlSequence): void {
    const { prefix, params, intermediates, final } = sequence;
    if (prefix === '?' && intermediates === '' && (final === 'h' || final === 'l')) {
      for (const mode of harmlessModes(params, final)) {
        if (final === 'h') this.set.add(mode);
        else this.set.delete(mode);
      }
    }
    this.put(harmlessSequence(sequence));
  }

  private put(text: string): void {
    this.out += text;
  }
}
