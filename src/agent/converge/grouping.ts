/** Cuts a run into groups that are changed together and made durable at once. */
import type { Family } from '../../resources/kind.js';
import type { Scope } from './scope.js';
import type { Target } from './target.js';

/** Most resources of one group: their contents and descriptors are held together. */
const GROUP_SIZE = 256;

/**
 * Within a stretch of these, only the order that dependencies ask for can be noticed. Of the others each comes after
 * the one before it, whatever it depends on.
 */
const ANY_ORDER: ReadonlySet<Family> = new Set(['path']);

/** Each of these may change anything, so that the next one is looked at only when it has ended. */
const ALONE: ReadonlySet<Family> = new Set(['script']);

/** Groups of desired resources in the order to apply them; none holds two of which one waits for the other. */
export function groupsToApply(targets: readonly Target[], scope: Scope): readonly (readonly Target[])[] {
  return stretchesOf(targets).flatMap((stretch) => {
    const family = stretch[0]?.kind?.family;
    return family !== undefined && ANY_ORDER.has(family) ? byLevel(stretch, scope) : inOrder(stretch, scope);
  });
}

/** Groups of removals, given in the order to remove them: what lies in a directory goes before the directory. */
export function groupsToRemove(targets: readonly Target[], scope: Scope): readonly (readonly Target[])[] {
  const groups: Target[][] = [];
  for (const target of targets) {
    const group = groups.at(-1);
    const family = target.kind?.family;
    const joins =
      group !== undefined &&
      !(family && ALONE.has(family)) &&
      group.length < GROUP_SIZE &&
      group[0]?.kind?.family === family &&
      !group.some((member) => scope.isWithin(member, target));
    if (joins) group.push(target);
    else groups.push([target]);
  }
  return groups;
}

/** Consecutive resources of one family. */
function stretchesOf(targets: readonly Target[]): readonly (readonly Target[])[] {
  const stretches: Target[][] = [];
  for (const target of targets) {
    const stretch = stretches.at(-1);
    const family = target.kind?.family;
    const isAlone = family !== undefined && ALONE.has(family);
    const joins = stretch && !isAlone && stretch.length < GROUP_SIZE && stretch[0]?.kind?.family === family;
    if (joins) stretch.push(target);
    else stretches.push([target]);
  }
  return stretches;
}

/** First those that wait for none of the stretch, then those that wait for these, and so on. */
function byLevel(stretch: readonly Target[], scope: Scope): readonly (readonly Target[])[] {
  const levels = new Map<number, number>();
  const groups: Target[][] = [];
  for (const target of stretch) {
    const level = 1 + Math.max(-1, ...scope.before(target).map((index) => levels.get(index) ?? -1));
    levels.set(target.index, level);
    const group = groups[level];
    if (group) group.push(target);
    else groups[level] = [target];
  }
  return groups;
}

function inOrder(stretch: readonly Target[], scope: Scope): readonly (readonly Target[])[] {
  const groups: Target[][] = [];
  let members = new Set<number>();
  for (const target of stretch) {
    const group = groups.at(-1);
    if (group && !scope.before(target).some((index) => members.has(index))) group.push(target);
    else {
      groups.push([target]);
      members = new Set();
    }
    members.add(target.index);
  }
  return groups;
}
