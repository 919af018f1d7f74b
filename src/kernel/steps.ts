/**
 * Long work as a generator that yields wherever other work may run. The command line runs it without a pause. The
 * orchestrator runs it in slices of a few milliseconds, so that no request waits for a large module.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs the steps without a pause. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Maps a list and yields after each item. */
export function* mapped<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Result,
): Steps<Result[]> {
  const results: Result[] = [];
  for (const [index, item] of items.entries()) {
    results.push(map(item, index));
    yield;
  }
  return results;
}
