/** Orders resources: in declaration order, except where a resource depends on a later one. */

/** Positions of the preceding nodes, for each node. */
export type Dependencies = readonly (readonly number[])[];

/**
 * Returns the nodes with every dependency before its dependents, or null for a cycle. Among nodes whose dependencies are
 * placed, the first declared one comes next.
 */
export function stableOrder(dependencies: Dependencies): readonly number[] | null {
  if (dependencies.every((before, node) => before.every((other) => other < node))) return [...dependencies.keys()];
  const { waiting, dependents } = graphOf(dependencies);
  const ready = minHeap();
  for (const [node, count] of waiting.entries()) if (count === 0) ready.push(node);
  const order: number[] = [];
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    order.push(node);
    for (const dependent of dependents[node] ?? []) {
      const left = (waiting[dependent] ?? 0) - 1;
      waiting[dependent] = left;
      if (left === 0) ready.push(dependent);
    }
  }
  return order.length === dependencies.length ? order : null;
}

/** Returns disjoint cycles, each from its first declared node along the dependencies. */
export function findCycles(dependencies: Dependencies): readonly (readonly number[])[] {
  const { waiting, dependents } = graphOf(dependencies);
  const left = new Set(dependencies.keys());
  /** Removes nodes, and every node that then has no dependencies left. */
  const remove = (nodes: number[]): void => {
    for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
      if (!left.delete(node)) continue;
      for (const dependent of dependents[node] ?? []) {
        const count = (waiting[dependent] ?? 0) - 1;
        waiting[dependent] = count;
        if (count === 0) nodes.push(dependent);
      }
    }
  };
  remove([...left].filter((node) => waiting[node] === 0));
  const cycles: (readonly number[])[] = [];
  for (let [start] = left; start !== undefined; [start] = left) {
    const cycle = walkToCycle(start, dependencies, left);
    cycles.push(fromSmallest(cycle));
    remove([...cycle]);
  }
  return cycles;
}

/** Follows dependencies into a cycle. Every remaining node depends on another remaining node, so there is one. */
function walkToCycle(start: number, dependencies: Dependencies, left: ReadonlySet<number>): number[] {
  const path: number[] = [];
  const at = new Map<number, number>();
  let node: number | undefined = start;
  while (node !== undefined && !at.has(node)) {
    at.set(node, path.length);
    path.push(node);
    node = dependencies[node]?.find((other) => left.has(other));
  }
  return node === undefined ? path : path.slice(at.get(node));
}

function fromSmallest(cycle: readonly number[]): readonly number[] {
  const first = cycle.indexOf(cycle.reduce((least, node) => Math.min(least, node)));
  return [...cycle.slice(first), ...cycle.slice(0, first)];
}

function graphOf(dependencies: Dependencies): { waiting: number[]; dependents: number[][] } {
  const dependents: number[][] = dependencies.map(() => []);
  for (const [node, before] of dependencies.entries()) for (const other of before) dependents[other]?.push(node);
  return { waiting: dependencies.map((before) => before.length), dependents };
}

/** A binary heap of numbers with the smallest on top. */
function minHeap(): { push(value: number): void; pop(): number | undefined } {
  const heap: number[] = [];
  const value = (at: number): number => heap[at] ?? Number.POSITIVE_INFINITY;
  const swap = (a: number, b: number): void => {
    [heap[a], heap[b]] = [value(b), value(a)];
  };
  return {
    push(added) {
      let at = heap.push(added) - 1;
      for (let parent = (at - 1) >> 1; at > 0 && value(at) < value(parent); parent = (at - 1) >> 1) {
        swap(at, parent);
        at = parent;
      }
    },
    pop() {
      const top = heap[0];
      const last = heap.pop();
      if (heap.length === 0 || last === undefined) return top;
      heap[0] = last;
      for (let at = 0; ; ) {
        const [left, right] = [2 * at + 1, 2 * at + 2];
        const least = value(right) < value(left) ? right : left;
        if (value(least) >= value(at)) return top;
        swap(at, least);
        at = least;
      }
    },
  };
}
