/** Numbers that stand for many. */

export function percentile(values: readonly number[], part: number): number {
  if (values.length === 0) throw new Error('there is nothing to take a percentile of');
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] as number;
}

/** Returns the mean of the two in the middle of an even number. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.slice(Math.ceil(sorted.length / 2) - 1, Math.floor(sorted.length / 2) + 1);
  if (middle.length === 0) throw new Error('there is nothing to take a median of');
  return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}
