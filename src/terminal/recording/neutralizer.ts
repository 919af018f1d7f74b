/** Makes recorded output harmless for the terminal that replays it: the output can draw, and nothing else. */
import { type ControlSequence, EscapeParser } from './escape-parser.js';

/** Tab, line ends, backspace, and the shifts between the two character sets for drawing lines. */
const CONTROLS = new Set('\b\t\n\v\f\r\x0e\x0f');

/**
 * Invisible characters that reorder text, hide text or end lines. Joiners and variation selectors stay because scripts and emoji
 * need them. Lone surrogates are included because two of them could form a new character.
 */
const UNSEEN =
  /[\p{Cs}\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]/gu;

/** Returns the text without invisible, misleading characters. */
export const withoutUnseen = (text: string): string => text.replace(UNSEEN, '');

export class Neutralizer {
  private readonly parser: EscapeParser;
  private out = '';
  /** Private modes that are set. */
  private readonly set = new Set<string>();

  constructor() {
    this.parser = new EscapeParser({
      print: (text) => this.put(withoutUnseen(text)),
      control: (character) => this.put(CONTROLS.has(character) ? character : ''),
      escape: (intermediates, final) => this.put(harmlessEscape(intermediates, final)),
      sequence: (sequence) => this.sequence(sequence),
    });
  }

  /** Returns the harmless part of the text. Keeps an incomplete sequence until its end arrives. */
  write(text: string): string {
    this.parser.write(text);
    const { out } = this;
    this.out = '';
    return out;
  }

  /** Returns the sequences that restore all modes. The replay writes them at its end. */
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

/**
 * Final bytes of sequences without prefix and intermediates that only draw: cursor, erase, insert, delete, scroll, repeat,
 * colours, margins. Queries and changes of title, clipboard, keyboard, mouse or size are missing on purpose.
 */
const DRAWING = new Set('@ABCDEFGHIJKLMPSXZ`abdefmrsu');

/** Modes that a replay may set and reset: origin, wrap, blink, cursor, margins, alternate screen. */
const VISIBLE_MODES = new Set(['5', '6', '7', '12', '25', '45', '47', '69', '1047', '1048', '1049']);
/** Modes that a replay may only reset, such as mouse, focus and paste. */
const RESETTABLE_MODES = new Set([
  '9',
  '1000',
  '1001',
  '1002',
  '1003',
  '1004',
  '1005',
  '1006',
  '1007',
  '1015',
  '1016',
  '2004',
  '2026',
]);

/** Returns the sequence in the form that a replay may send, or an empty string when it does more than draw. */
export function harmlessSequence({ prefix, params, intermediates, final }: ControlSequence): string {
  const send = (text: string) => `\x1b[${prefix}${text}${intermediates}${final}`;
  if (prefix === '?' && intermediates === '') {
    if (final === 'h' || final === 'l') return sendModes(params, final);
    return /^[JK]$/.test(final) && /^[012]?$/.test(params) ? send(params) : '';
  }
  if (prefix !== '') return '';
  if (intermediates === ' ') return final === 'q' && /^\d?$/.test(params) ? send(params) : '';
  if (intermediates === '!') return final === 'p' ? send('') : '';
  if (intermediates !== '') return '';
  if (final === 'h' || final === 'l') return params === '4' ? send(params) : '';
  if (!DRAWING.has(final)) return '';
  // Keeps the scrollback of the viewer's terminal.
  if (final === 'J' && !/^[012]?$/.test(params)) return '';
  // With several parameters these do not scroll or restore the cursor.
  if (/[STu]/.test(final) && !/^\d*$/.test(params)) return '';
  return send(final === 'm' ? params : params.replace(/\d{5,}/g, '9999'));
}

function sendModes(params: string, final: 'h' | 'l'): string {
  const modes = harmlessModes(params, final);
  return modes.length === 0 ? '' : `\x1b[?${modes.join(';')}${final}`;
}

/** Returns the modes that a replay may set (`h`) or reset (`l`). */
export function harmlessModes(params: string, final: 'h' | 'l'): readonly string[] {
  return params.split(';').filter((mode) => VISIBLE_MODES.has(mode) || (final === 'l' && RESETTABLE_MODES.has(mode)));
}

/** Like `harmlessSequence` for short escapes: save and restore cursor, index, new line, and the line-drawing character set. */
export function harmlessEscape(intermediates: string, final: string): string {
  if (intermediates === '' && /^[78DEM]$/.test(final)) return `\x1b${final}`;
  if (/^[()*+]$/.test(intermediates) && /^[AB0]$/.test(final)) return `\x1b${intermediates}${final}`;
  // A full reset would clear the scrollback.
  if (intermediates === '' && final === 'c') return '\x1b[!p\x1b[r\x1b(B\x0f\x1b[H\x1b[2J';
  return '';
}
