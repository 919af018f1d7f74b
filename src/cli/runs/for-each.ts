/** Does the same for many, a few at a time. */

/** Agents that are worked on at once. */
export const AT_ONCE = 8;

/** The results in the order of the items. After a throw nothing new begins; it is thrown on once the rest is done. */
export async function forEach<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  atOnce = AT_ONCE,
): Promise<R[]> {
  const results: R[] = [];
  const errors: unknown[] = [];
  let next = 0;
  const worker = async () => {
    while (next < items.length && errors.length === 0) {
      const index = next;
      next += 1;
      const item = items[index];
      try {
        if (item !== undefined) results[index] = await work(item);
      } catch (error) {
        errors.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (errors.length > 0) throw errors[0];
  return results;
}
