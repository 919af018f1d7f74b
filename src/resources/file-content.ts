/** The content of files: which texts a module may write, and how a file differs from them. */
import { MAX_CONTENT_BYTES, type PathFact } from './host.js';
import type { BodyProblem, FieldChange } from './kind.js';

/** Returns why a text cannot be the content of a file; empty when it can. */
export function checkText(text: string): readonly BodyProblem[] {
  const problems: BodyProblem[] = [];
  // UTF-8 cannot encode half of a surrogate pair.
  if (!text.isWellFormed()) problems.push({ path: '/content', message: 'content is not valid Unicode text' });
  if (isLongerThan(text, MAX_CONTENT_BYTES)) {
    problems.push({ path: '/content', message: `content is larger than ${MAX_CONTENT_BYTES} bytes` });
  }
  return problems;
}

/** True when a text has more bytes than that in UTF-8. */
export function isLongerThan(text: string, bytes: number): boolean {
  if (text.length * 3 <= bytes) return false;
  if (text.length > bytes) return true;
  let size = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    size += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return size > bytes;
}

/** The difference between a file's content and the wanted one. */
interface ContentComparison {
  readonly changes: readonly FieldChange[];
  readonly text: { readonly before: string | null; readonly after: string };
}

/** Returns null when the content is equal or not managed. */
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
