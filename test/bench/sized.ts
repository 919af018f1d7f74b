/** Sizes of the benchmarks: `npm run bench -- --smallest` runs every row once, with as little as gives a number. */

/** True in a run that shows that the rows work; its numbers mean nothing, and its goals do not count. */
export const IS_SMALLEST = process.env.ORCH_BENCH_SMALLEST === '1';

/** Returns the size to measure with: `full`, or `smallest` in a run with `--smallest`. */
export const sized = <T>(full: T, smallest: T): T => (IS_SMALLEST ? smallest : full);
