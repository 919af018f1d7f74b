/** Cuts a run into groups that may be changed and made durable together. */
import type { Item } from './item.js';

/** Items of a group at most, so that progress shows and a cancel does not wait long. */
const GROUP_SIZE = 256;

/**
 * Consecutive items of one kind of which none depends on another one of the group. Removals of one kind may share a
 * group as long as none lies below another.
 */
export function groupsOf(items: readonly Item[]): readonly (readonly Item[])[] {
  const groups: Item[][] = [];
  let indices = new Set<number>();
  for (const item of items) {
    const current = groups.at(-1);
    if (current !== undefined && current.length < GROUP_SIZE && fits(item, current[0], indices)) {
      current.push(item);
      indices.add(item.index);
    } else {
      groups.push([item]);
      indices = new Set([item.index]);
    }
  }
  return groups;
}

function fits(item: Item, first: Item | undefined, indices: ReadonlySet<number>): boolean {
  if (first?.kind !== item.kind || first?.purpose !== item.purpose) return false;
  // What lies in a directory goes before it, and a directory is observed only then.
  if (item.purpose === 'removal') return item.resource.kind.startsWith('file-');
  return !item.resource.after.some((index) => indices.has(index));
}
