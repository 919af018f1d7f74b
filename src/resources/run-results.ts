/**
 * Results of a run in short: resources that were found as desired take one entry together. A run that changes nothing is
 * reported, stored and sent in a few bytes, however many resources it has.
 */
import * as Type from 'typebox';
import type { DesiredResource } from './desired.js';
import type { ResourceResult } from './result.js';
import { isTainted } from './tainted-body.js';

/** Consecutive resources that existed, were found as desired, and have nothing else to report. */
export const UnchangedSchema = Type.Object(
  {
    /** Position in the run of the first one. */
    index: Type.Integer({ minimum: 0 }),
    count: Type.Integer({ minimum: 1 }),
    /** Duration of each one. */
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  { additionalProperties: false },
);
export type Unchanged = Type.Static<typeof UnchangedSchema>;

/** The result of one item. */
export interface ItemResult {
  /** Position in the run: resources, then removals. */
  readonly index: number;
  readonly existed: boolean | null;
  readonly result: ResourceResult;
}

/** Returns the entries with more of the unchanged ones in short; the order stays. */
export function shortened<Item extends ItemResult>(
  entries: readonly (Item | Unchanged)[],
  resources: readonly DesiredResource[],
): readonly (Item | Unchanged)[] {
  const short: (Item | Unchanged)[] = [];
  let last: Unchanged | null = null;
  for (const entry of entries) {
    const range = rangeOf(entry, resources);
    if (range === null) {
      last = null;
      short.push(entry);
    } else if (last !== null && last.index + last.count === range.index && last.duration_ms === range.duration_ms) {
      last.count += range.count;
    } else {
      last = { ...range };
      short.push(last);
    }
  }
  return short;
}

function rangeOf(entry: ItemResult | Unchanged, resources: readonly DesiredResource[]): Unchanged | null {
  if (isUnchanged(entry)) return entry;
  const { index, result } = entry;
  return isPlain(entry, resources[index]) ? { index, count: 1, duration_ms: result.duration_ms } : null;
}

/** Returns the number of results that the entries stand for. */
export const countResults = (entries: readonly (ItemResult | Unchanged)[]): number =>
  entries.reduce((sum, entry) => sum + sizeOf(entry), 0);

const sizeOf = (entry: ItemResult | Unchanged): number => (isUnchanged(entry) ? entry.count : 1);

/** Returns the entries without the first results. */
export function withoutFirst<Item extends ItemResult>(
  entries: readonly (Item | Unchanged)[],
  results: number,
): readonly (Item | Unchanged)[] {
  let left = results;
  return entries.flatMap((entry) => {
    const size = sizeOf(entry);
    const dropped = Math.min(left, size);
    left -= dropped;
    if (dropped === 0) return entry;
    if (dropped === size || !isUnchanged(entry)) return [];
    return { ...entry, index: entry.index + dropped, count: size - dropped };
  });
}

export const isUnchanged = (entry: object): entry is Unchanged => 'count' in entry;

/** Returns the items that an entry stands for. Ignores positions without a resource. */
export function itemsOf({ index, count, duration_ms }: Unchanged, resources: readonly DesiredResource[]): ItemResult[] {
  return resources
    .slice(index, index + count)
    .map((resource, offset) => ({ index: index + offset, existed: true, result: plainResult(resource, duration_ms) }));
}

/** Returns true when `itemsOf` would give the item again. */
function isPlain(item: ItemResult, resource: DesiredResource | undefined): boolean {
  const { result, existed } = item;
  return (
    resource !== undefined &&
    existed === true &&
    !('output' in item && item.output != null) &&
    result.status === 'unchanged' &&
    result.action === 'none' &&
    result.changes.length === 0 &&
    result.diff === null &&
    result.reason === null &&
    result.error === null &&
    result.sensitive === isTainted(resource)
  );
}

function plainResult(resource: DesiredResource, duration_ms: number): ResourceResult {
  const { module, kind, identity, id, name } = resource;
  return {
    module,
    kind,
    identity,
    id,
    name,
    action: 'none',
    status: 'unchanged',
    changes: [],
    diff: null,
    sensitive: isTainted(resource),
    reason: null,
    error: null,
    duration_ms,
  };
}
