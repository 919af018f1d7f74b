/** Characters that a module's text may not hold, found before anything else looks at it. */
import type { MistakeList } from './mistake.js';

// C0 except tab and line ends, DEL, C1 except NEL, a carriage return alone, a byte order mark inside, lone surrogates.
const FORBIDDEN =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u0084\u0086-\u009f\ufeff]|\r(?!\n)|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Reports every forbidden character; false when there is one. The text comes without its byte order mark. */
export function checkCharacters(text: string, mistakes: MistakeList): boolean {
  let sound = true;
  for (const match of text.matchAll(FORBIDDEN)) {
    sound = false;
    const code = match[0].charCodeAt(0);
    const place = { start: match.index, end: match.index + 1 };
    if (code === 0xfeff) mistakes.error('byte_order_mark', 'a byte order mark may only stand at the start', '', place);
    else mistakes.error('control_character', messageOf(code), '', place);
  }
  return sound;
}

function messageOf(code: number): string {
  if (code === 0) return 'a NUL character is not allowed in a module';
  if (code === 0x0d) return 'a carriage return is not allowed without a line feed behind it';
  const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  if (code >= 0xd800) return `half of a surrogate pair (${name}) is not a character`;
  return `the control character ${name} is not allowed; in double quotes write it as an escape such as "\\x1b"`;
}
