/** Which character begins an escape. */
import { Fault } from '../../kernel/fault.js';

/** One byte, or null for none. Throws `usage`. */
export function escapeCharacter(given: string | undefined): string | null {
  if (given === undefined) return '~';
  if (given === 'none') return null;
  const control = /^\^([@-_a-z])$/.exec(given)?.[1];
  if (control !== undefined) return String.fromCharCode(control.toUpperCase().charCodeAt(0) & 0x1f);
  if (/^[\x21-\x7e]$/.test(given)) return given;
  throw new Fault('usage', `-e takes one character, such as ~, or one like ^], or none; not ${JSON.stringify(given)}`);
}

/** As people type it. */
export const shownCharacter = (character: string): string =>
  character.charCodeAt(0) < 0x20 ? `^${String.fromCharCode(character.charCodeAt(0) | 0x40)}` : character;
