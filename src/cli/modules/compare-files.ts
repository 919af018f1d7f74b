/** Comparisons of files with what the orchestrator has stored. */
import { type Line, styled } from '../outcome.js';
import { textDiff, textDiffLines } from '../render/text-diff.js';
import { type FileDifference, fileDifferenceLines } from './files-beside.js';

export interface Compared {
  readonly name: string;
  readonly path: string;
  /** Compared revision; null if nothing of the name is stored. */
  readonly revision: number | null;
  readonly has_changes: boolean;
  /** Unified diff of the texts; empty if nothing differs. */
  readonly diff: string;
  /** Files beside a module that differ; absent for value sets. */
  readonly files?: readonly FileDifference[];
}

interface ToCompare {
  readonly name: string;
  readonly path: string;
  readonly source: string;
}

/** A stored revision. */
interface StoredText {
  readonly revision: number;
  readonly content: string;
}

/** Compares a file with a stored revision; null for none. @param files files beside a module that differ */
export function compareWith(
  { name, path, source }: ToCompare,
  stored: StoredText | null,
  files?: readonly FileDifference[],
): Compared {
  const before = { label: stored === null ? '/dev/null' : `${name} revision ${stored.revision}` };
  const diff = textDiff({ ...before, text: stored?.content ?? '' }, { label: path, text: source });
  const has_changes = diff !== '' || (files ?? []).length > 0;
  return { name, path, revision: stored?.revision ?? null, has_changes, diff, ...(files && { files }) };
}

export const comparedLines = ({ name, path, revision, has_changes, diff, files = [] }: Compared): readonly Line[] =>
  has_changes
    ? [...(diff === '' ? [] : textDiffLines(diff)), ...fileDifferenceLines(files)]
    : [styled('good', `${path} is revision ${revision} of ${name}.`)];
