/** The beginning of a list that weighs so much, and at least its first: what one transaction may delete. */
export function upTo<T>(items: readonly T[], limit: number, weigh: (item: T) => number): readonly T[] {
  let weight = 0;
  const end = items.findIndex((item) => {
    weight += weigh(item);
    return weight >= limit;
  });
  return end === -1 ? items : items.slice(0, end + 1);
}
