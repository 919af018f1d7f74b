/** Finds the known word that is closest to a mistyped one. */

const MAX_LENGTH = 64;

/** Returns the nearest candidate, the first of equally near ones, or null when none is near enough. */
export function nearest(word: string, candidates: Iterable<string>): string | null {
  if (word.length > MAX_LENGTH) return null;
  let best: string | null = null;
  let least = Math.min(3, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const distance = distanceBetween(normal(word), normal(candidate));
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

/** Returns a suggestion such as `; did you mean "owner"?`, or an empty text. */
export function suggestion(word: string, candidates: Iterable<string>): string {
  const meant = nearest(word, candidates);
  return meant === null ? '' : `; did you mean "${meant}"?`;
}

const normal = (word: string): string => word.toLowerCase().replaceAll('-', '_');

/** Returns the edit distance: insertions, deletions, replacements and swaps of neighbours. */
function distanceBetween(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const same = a[row - 1] === b[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[column - 2] ?? 0) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length] ?? 0;
}
