/** Missing parent directories of a new file or directory, and whether they are made. */
import * as Type from 'typebox';
import { optional } from '../kernel/schema.js';
import type { PathFact } from './host.js';
import type { Decision, FieldChange, PlanContext } from './kind.js';

/** The `parents` field of files and directories. */
export const parentsField = optional(
  Type.Boolean({ description: 'Make missing directories on the way (default); false: fail instead' }),
);

/** The path rules of a platform. */
export interface PathRules {
  parentOf(path: string): string;
  /** Returns the identity of the directory at a path. */
  identityOf(path: string): string;
  readonly directoryKind: string;
}

interface MissingParents {
  readonly refusal: Extract<Decision, { action: 'fail' }> | null;
  /** Member of the decision: missing directories that this resource makes. */
  readonly makes: { readonly makes?: readonly string[] };
  readonly changes: readonly FieldChange[];
  /** Member of the step. */
  readonly parents: { readonly parents?: true };
}

/** The way to a path whose parent exists. */
export const NO_MISSING_PARENTS: MissingParents = { refusal: null, makes: {}, changes: [], parents: {} };

/** Returns the missing parents of an absent path, or why nothing can be made there. */
export function findMissingParents(
  { path, parents }: { readonly path: string; readonly parents?: boolean | null },
  have: Extract<PathFact, { type: 'absent' }>,
  context: PlanContext,
  rules: PathRules,
): MissingParents {
  const { parentOf, identityOf, directoryKind } = rules;
  const parent = parentOf(path);
  const isDeclared = (directory: string) => context.declares('path', identityOf(directory), directoryKind);
  if (have.parent === 'directory' || isDeclared(parent)) return NO_MISSING_PARENTS;
  // An earlier link leads to a directory once it is there.
  const isLinked = (directory: string) => context.declares('path', identityOf(directory), 'symlink-unix');
  const all = have.missing ?? [];
  if (context.purpose === 'plan' && (isLinked(parent) || all.some(isLinked))) return NO_MISSING_PARENTS;
  const missing = all.slice(all.findLastIndex(isDeclared) + 1);
  const later = missing.find((directory) => context.comesLater('path', identityOf(directory)));
  if (later !== undefined) return refused(`the directory ${later} does not exist; declare it before this one`);
  const isBlocked = have.parent !== 'absent' || context.declares('path', identityOf(parent));
  if (parents === false || isBlocked || missing.length === 0) {
    if (context.mayAppear) return NO_MISSING_PARENTS;
    const { dangling } = have;
    if (dangling !== undefined) {
      const link = `${dangling.path} is a symlink to ${dangling.target}, which does not exist`;
      return refused(`${link}, so nothing can lie below it; make the target, or remove the link`);
    }
    if (isBlocked) return refused(`${parent} is not a directory, so nothing can lie in it`);
    return refused(`the directory ${parent} does not exist; declare it as a ${directoryKind} resource before this one`);
  }
  const makes = missing.filter((directory) => !context.isMade(directory));
  if (makes.length === 0) return { ...NO_MISSING_PARENTS, parents: { parents: true } };
  const after = `${makes.join(', ')}${context.mayAppear ? ', unless something before brings them' : ''}`;
  return {
    refusal: null,
    makes: { makes },
    changes: [{ field: 'parents', before: null, after }],
    parents: { parents: true },
  };
}

const refused = (message: string): MissingParents => ({
  ...NO_MISSING_PARENTS,
  refusal: { action: 'fail', code: 'parent_missing', message },
});
