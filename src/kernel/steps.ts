/**
 * Long work in steps: a generator that pauses wherever other work may go first. The command line finishes it at once; the
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

/** Maps a list with a step for each item. */
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
