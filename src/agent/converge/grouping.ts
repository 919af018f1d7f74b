/** Cuts a run into groups that are changed together and made durable at once. */
import type { Family } from '../../resources/kind.js';
import { editedBy, type Scope } from './scope.js';
import type { Target } from './target.js';

/** Maximum resources per group, because their contents and descriptors are held at the same time. */
const GROUP_SIZE = 256;

/**
 * Families whose members may be reordered within a stretch, as far as dependencies allow. Members of other families keep
 * their order.
 */
const ANY_ORDER: ReadonlySet<Family> = new Set(['path']);

/** Families whose members may change anything, or a file together: the next resource is observed when each of them has ended. */
const ALONE: ReadonlySet<Family> = new Set(['script', 'authorized-key']);

/** Returns groups of desired resources in the order of application; no group holds two resources that depend on each other. */
export function groupsToApply(targets: readonly Target[], scope: Scope): readonly (readonly Target[])[] {
  return stretchesOf(targets).flatMap((stretch) => {
    const family = stretch[0]?.kind?.family;
    return family !== undefined && ANY_ORDER.has(family) ? byLevel(stretch, scope) : inOrder(stretch, scope);
  });
}

/** Returns groups of removals in the given order: the contents of a directory come before the directory. */
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
      !group.some((member) => scope.isWithin(member, target)) &&
      !sharesFile(group, target);
    if (joins) group.push(target);
    else groups.push([target]);
  }
  return groups;
}

/** Cuts resources into runs of consecutive ones of the same family. */
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

/**
 * Groups a stretch by dependency level: first resources that depend on none of the stretch, then their dependents. Files that are
 * checked together are in one group even if they depend on each other, unless others come between them.
 */
function byLevel(stretch: readonly Target[], scope: Scope): readonly (readonly Target[])[] {
  const levels = (stretch.some(checkOf) ? levelsOf(stretch, scope, checkOf) : null) ?? levelsOf(stretch, scope);
  const groups: Target[][] = [];
  for (const target of stretch) {
    const level = levels?.get(target.index) ?? 0;
    const group = groups[level];
    if (group) group.push(target);
    else groups[level] = [target];
  }
  // A set takes the levels below it away.
  return groups.filter((group) => group !== undefined);
}

const checkOf = ({ kind, source }: Target): string | null => kind?.together?.(source.body) ?? null;

/**
 * Returns the level of each resource by position, equal for those of one set; null where a set depends on itself through a resource
 * that is not in it.
 */
function levelsOf(
  stretch: readonly Target[],
  scope: Scope,
  setOf: (target: Target) => string | null = () => null,
): ReadonlyMap<number, number> | null {
  const levels = new Map<number, number>();
  const setLevels = new Map<string, number>();
  const sets = new Map(stretch.map((target) => [target.index, setOf(target)]));
  for (let round = 0; round <= stretch.length; round += 1) {
    let isSettled = true;
    for (const target of stretch) {
      const set = sets.get(target.index) ?? null;
      const needed = scope.before(target).map((before) => {
        const isFellow = set !== null && sets.get(before) === set;
        return (levels.get(before) ?? -1) + (isFellow ? 0 : 1);
      });
      const known = levels.get(target.index);
      const level = Math.max(0, known ?? 0, (set === null ? null : setLevels.get(set)) ?? 0, ...needed);
      if (level === known) continue;
      levels.set(target.index, level);
      if (set !== null) setLevels.set(set, level);
      isSettled &&= set === null && round === 0;
    }
    if (isSettled) return levels;
  }
  return null;
}

function inOrder(stretch: readonly Target[], scope: Scope): readonly (readonly Target[])[] {
  const groups: Target[][] = [];
  let members = new Set<number>();
  for (const target of stretch) {
    const group = groups.at(-1);
    const follows = scope.before(target).some((index) => members.has(index));
    if (group && !follows && !sharesFile(group, target)) group.push(target);
    else {
      groups.push([target]);
      members = new Set();
    }
    members.add(target.index);
  }
  return groups;
}

/** True when one of the group changes a part of the same file, which has to be read again after that. */
function sharesFile(group: readonly Target[], target: Target): boolean {
  const path = editedBy(target);
  return path !== null && group.some((member) => editedBy(member) === path);
}
