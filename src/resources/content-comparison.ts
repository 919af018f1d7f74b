/** How the content of a file differs from what a module wants. */
import type { PathFact } from './host.js';
import type { FieldChange } from './kind.js';

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
