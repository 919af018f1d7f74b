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

/** Groups a stretch by dependency level: first resources that depend on none of the stretch, then their dependents. */
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
