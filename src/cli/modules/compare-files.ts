/** Comparisons of files with what the orchestrator has stored. */
import { type Line, styled } from '../outcome.js';
import { textDiff, textDiffLines } from '../render/text-diff.js';

export interface Compared {
  readonly name: string;
  readonly path: string;
  /** Compared revision; null if nothing of the name is stored. */
  readonly revision: number | null;
  readonly has_changes: boolean;
  /** Unified diff; empty if nothing differs. */
  readonly diff: string;
}

interface ToCompare {
  readonly name: string;
  readonly path: string;
  readonly source: string;
}

/** Compares a file with a stored revision; null for none. */
export function compareWith(
  { name, path, source }: ToCompare,
  stored: { readonly revision: number; readonly content: string } | null,
): Compared {
  const before = { label: stored === null ? '/dev/null' : `${name} revision ${stored.revision}` };
  const diff = textDiff({ ...before, text: stored?.content ?? '' }, { label: path, text: source });
  return { name, path, revision: stored?.revision ?? null, has_changes: diff !== '', diff };
}

export const comparedLines = ({ name, path, revision, diff }: Compared): readonly Line[] =>
  diff === '' ? [styled('good', `${path} is revision ${revision} of ${name}.`)] : textDiffLines(diff);
