/** Splits long lists, because a statement takes a limited number of parameters. */
export function chunks<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  const parts: (readonly T[])[] = [];
  for (let from = 0; from < items.length; from += size) parts.push(items.slice(from, from + size));
  return parts;
}

/**
 * Returns the beginning of a list, up to and including the item at which the total weight reaches `limit`; used to
 * bound the deletes of one transaction.
 */
export function upTo<T>(items: readonly T[], limit: number, weigh: (item: T) => number): readonly T[] {
  let weight = 0;
  const end = items.findIndex((item) => {
    weight += weigh(item);
    return weight >= limit;
  });
  return end === -1 ? items : items.slice(0, end + 1);
}
