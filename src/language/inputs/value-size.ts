/** Bounds the size of a value. */
import type { Located } from '../located.js';

/** Maximum parts of a value, because it is checked in one go. */
const MAX_PARTS = 5_000;

/** Returns a message about a value with too many parts, or null. @param label of the value, for the message */
export const sizeProblem = (node: Located, label: string): string | null =>
  partsOf(node, MAX_PARTS) > MAX_PARTS
    ? `${label} has more than ${MAX_PARTS} values in it; make several inputs of it`
    : null;

/** Counts a value and everything in it, up to more than `most`. */
function partsOf(node: Located, most: number): number {
  if (node.type === 'scalar') return 1;
  let count = 1;
  for (const part of node.type === 'list' ? node.items : node.members.values()) {
    count += partsOf('value' in part && 'key' in part ? part.value : part, most - count);
    if (count > most) return count;
  }
  return count;
}
