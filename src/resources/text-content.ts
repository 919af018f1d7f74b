/** What text a file may hold: it has to come back from the disk as it was written. */
import { MAX_CONTENT_BYTES } from './host.js';
import type { BodyProblem } from './kind.js';

/** Half of a surrogate pair, which UTF-8 has no form for. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** Why a text cannot be the content of a file; empty when it can. */
export function checkText(text: string): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  if (LONE_SURROGATE.test(text)) problems.push({ path: '/content', message: 'content is not valid Unicode text' });
  if (isLongerThan(text, MAX_CONTENT_BYTES)) {
    problems.push({ path: '/content', message: `content is larger than ${MAX_CONTENT_BYTES} bytes` });
  }
  return problems;
}

/** Whether a text takes more bytes than that in UTF-8. */
function isLongerThan(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return false;
  if (text.length > bytes) return true;
  let size = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    size += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return size > bytes;
}
