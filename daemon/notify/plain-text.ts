/** Makes text that may come from an agent harmless: one line, without anything invisible that steers or reorders it. */

/** Control and format characters (bidi marks, zero width), line separators, halves of characters, and blanks among them. */
const HOSTILE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\s]+/gu;

/** At most that many characters of UTF-16; what is cut off is told by an ellipsis. */
export function plainText(text: string, most: number): string {
  const line = text.replace(HOSTILE, ' ').trim();
  return line.length <= most ? line : `${whole(line.slice(0, most - 1))}…`;
}

/** Without half a character at the end. */
const whole = (text: string): string => text.replace(/[\ud800-\udbff]$/, '');
