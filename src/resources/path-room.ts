/** A path as it will be once the removals that stand in its way are done. */
import type { FileStep, PathFact } from './host.js';
import type { PlanContext } from './kind.js';
import type { PathRules } from './missing-parents.js';

/**
 * Returns the fact that a plan for a path goes by.
 * @param own type of the wanted object: objects of other types may have to give way
 */
export function afterRemovals(
  path: string,
  have: PathFact,
  context: PlanContext,
  { rules: { parentOf, identityOf }, own }: { readonly rules: PathRules; readonly own: PathFact['type'] },
): PathFact {
  const isRemoved = (at: string) => context.purpose === 'plan' && context.removes('path', identityOf(at));
  const mayGiveWay = have.type !== own && ['file', 'directory', 'symlink'].includes(have.type);
  if (mayGiveWay && (isRemoved(path) || context.cleared.includes(identityOf(path)))) {
    return { type: 'absent', parent: 'directory' };
  }
  if (have.type !== 'absent' || have.parent !== 'not-directory') return have;
  const missing: string[] = [];
  let last = path;
  for (let at = parentOf(path); at !== last; at = parentOf(at)) {
    missing.unshift(at);
    if (isRemoved(at)) return { type: 'absent', parent: 'absent', missing };
    last = at;
  }
  return have;
}

/** Returns the steps that take away the directories that give way to a file. */
export const clearingSteps = ({ cleared }: PlanContext): readonly FileStep[] =>
  cleared.map((path) => ({ do: 'remove-directory', path }));
