/** What text a file may hold: it has to come back from the disk as it was written. */
import { MAX_CONTENT_BYTES, type PathFact } from './host.js';
import type { BodyProblem, FieldChange } from './kind.js';

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

/** How the content of a file differs from what a module wants. */
export interface ContentComparison {
  readonly changes: readonly FieldChange[];
  readonly text: { readonly before: string | null; readonly after: string };
}

/** Null when it is equal or not managed. */
export function compareContent(
  want: string | null,
  have: Extract<PathFact, { type: 'file' }>,
): ContentComparison | null {
  if (want === null) return null;
  const { content } = have;
  if (content.kind === 'text' && content.text === want) return null;
  const before = content.kind === 'text' ? content.text : null;
  const shown = { text: null, binary: 'binary data', 'too-large': `${have.size} bytes`, unread: null }[content.kind];
  return { changes: [{ field: 'content', before: shown, after: null }], text: { before, after: want } };
}
