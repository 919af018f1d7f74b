/** Numbers that stand for many. */

export function percentile(values: readonly number[], part: number): number {
  if (values.length === 0) throw new Error('there is nothing to take a percentile of');
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] as number;
}

export const median = (values: readonly number[]): number => percentile(values, 0.5);
