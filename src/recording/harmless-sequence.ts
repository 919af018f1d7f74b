/**
 * Which control sequences a replay may send to a terminal: those that draw. What asks the terminal something, or changes its
 * title, clipboard, keyboard, mouse, size or character set for good, is not among them.
 */
import type { ControlSequence } from './escape-parser.js';

/** Without prefix and intermediates: cursor, erase, insert, delete, scroll, repeat, colours, margins. */
const DRAWING = new Set('@ABCDEFGHIJKLMPSXZ`abdefmrsu');

/** Modes that may be set and reset: what a screen looks like. Origin, wrap, blink, cursor, margins, the other screen. */
const VISIBLE_MODES = new Set(['5', '6', '7', '12', '25', '45', '47', '69', '1047', '1048', '1049']);
/** Modes that may be reset only: mouse, focus, paste and so on, none of which a replay has turned on. */
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

/** The sequence as it may be sent, or what stands in its place: nothing for one that does more than draw. */
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
  // The lines that have left the screen belong to whoever watches.
  if (final === 'J' && !/^[012]?$/.test(params)) return '';
  // Long forms mean something else than scrolling and going back.
  if (/[STu]/.test(final) && !/^\d*$/.test(params)) return '';
  return send(final === 'm' ? params : params.replace(/\d{5,}/g, '9999'));
}

function sendModes(params: string, final: 'h' | 'l'): string {
  const modes = harmlessModes(params, final);
  return modes.length === 0 ? '' : `\x1b[?${modes.join(';')}${final}`;
}

/** Those of the modes that may be set (`h`) or reset (`l`). */
export function harmlessModes(params: string, final: 'h' | 'l'): readonly string[] {
  return params.split(';').filter((mode) => VISIBLE_MODES.has(mode) || (final === 'l' && RESETTABLE_MODES.has(mode)));
}

/** The same for a short escape sequence: save and restore, index, new line, and the set with lines and corners. */
export function harmlessEscape(intermediates: string, final: string): string {
  if (intermediates === '' && /^[78DEM]$/.test(final)) return `\x1b${final}`;
  if (/^[()*+]$/.test(intermediates) && /^[AB0]$/.test(final)) return `\x1b${intermediates}${final}`;
  // A full reset takes the lines that have left the screen with it.
  if (intermediates === '' && final === 'c') return '\x1b[!p\x1b[r\x1b(B\x0f\x1b[H\x1b[2J';
  return '';
}
