/** Makes text from a server or an agent harmless on a terminal: what would steer it is shown instead of obeyed. */

/**
 * Control characters (C0, DEL, C1), everything invisible that formats or reorders text (bidi marks, zero-width
 * characters, tags), line and paragraph separators, and halves of characters.
 */
const HOSTILE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** For one line of a terminal: `\x1b`, `\u202e`, `\n` stand for themselves. */
export const sanitize = (text: string): string => text.replace(HOSTILE, (found) => SHORT[found] ?? escapeShort(found));

/** The same, but a tab becomes spaces: for lines of files, whose indentation people want to see. */
export const sanitizeLine = (text: string): string =>
  text.replace(HOSTILE, (found) => (found === '\t' ? '    ' : (SHORT[found] ?? escapeShort(found))));

function escapeShort(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${hex(code, 2)}`;
  return code > 0xffff ? `\\u{${hex(code, 1)}}` : `\\u${hex(code, 4)}`;
}

/** JSON text with every hostile character as an escape; those that JSON.stringify leaves stand inside strings only. */
export const escapeJson = (json: string): string =>
  json.replace(HOSTILE, (found) =>
    found === '\n' ? found : [...utf16(found)].map((unit) => `\\u${hex(unit, 4)}`).join(''),
  );

/** The same for YAML, whose double-quoted strings have an escape for every code point. */
export const escapeYaml = (yaml: string): string =>
  yaml.replace(HOSTILE, (found) => (found === '\n' ? found : `\\U${hex(found.codePointAt(0) ?? 0, 8)}`));

/** Tells whether a text holds anything but harmless characters and line ends. */
export const isHostile = (text: string): boolean => text.replaceAll('\n', '').search(HOSTILE) >= 0;

function* utf16(text: string): Generator<number> {
  for (let index = 0; index < text.length; index += 1) yield text.charCodeAt(index);
}

const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, '0');

/** How many columns of a terminal a text takes. */

const WIDE =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]$/u;

/** Of harmless text: see `sanitize`. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** The text cut to at most that many columns, the last one an ellipsis when something was cut. */
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
