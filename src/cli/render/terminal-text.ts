/** Text on a terminal: escapes control characters from servers and agents, and measures and cuts by columns. */

/**
 * Control characters (C0, DEL, C1), invisible characters that format or reorder text (bidi marks, zero-width
 * characters, tags), line and paragraph separators, and unpaired surrogates.
 */
const HOSTILE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Printable ASCII: nothing to escape, one column each. */
const PLAIN = /^[\x20-\x7e]*$/;

/** Escapes text for one terminal line: shows control characters as `\x1b`, `\u202e`, `\n`. */
export const sanitize = (text: string): string =>
  PLAIN.test(text) ? text : text.replace(HOSTILE, (found) => SHORT[found] ?? escapeShort(found));

/** Escapes like `sanitize`, but turns tabs into spaces, to keep the indentation of files. */
export const sanitizeLine = (text: string): string =>
  text.replace(HOSTILE, (found) => (found === '\t' ? '    ' : (SHORT[found] ?? escapeShort(found))));

function escapeShort(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${hex(code, 2)}`;
  return code > 0xffff ? `\\u{${hex(code, 1)}}` : `\\u${hex(code, 4)}`;
}

/** Escapes hostile characters in JSON text. JSON.stringify leaves them only inside strings. */
export const escapeJson = (json: string): string =>
  json.replace(HOSTILE, (found) =>
    found === '\n' ? found : [...utf16(found)].map((unit) => `\\u${hex(unit, 4)}`).join(''),
  );

/** Escapes hostile characters in YAML text, where they stand only in double-quoted strings. */
export const escapeYaml = (yaml: string): string =>
  yaml.replace(HOSTILE, (found) => (found === '\n' ? found : `\\U${hex(found.codePointAt(0) ?? 0, 8)}`));

/** Returns whether a text contains hostile characters other than newlines. */
export const isHostile = (text: string): boolean => text.replaceAll('\n', '').search(HOSTILE) >= 0;

function* utf16(text: string): Generator<number> {
  for (let index = 0; index < text.length; index += 1) yield text.charCodeAt(index);
}

const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, '0');

const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]$/u;

/** Returns the columns that sanitised text takes. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Cuts a text to a number of columns; a cut text ends with an ellipsis. */
export function cutToWidth(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let cut = '';
  let width = 0;
  for (const character of text) {
    width += characterWidth(character);
    if (width > columns - 1) break;
    cut += character;
  }
  return `${cut}…`;
}

const characterWidth = (character: string): number => {
  if (/^\p{M}$/u.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
};
