/** The clock interface: wall clock for records, monotonic clock for deadlines. */
export interface Clock {
  /** Unix time in milliseconds. */
  now(): number;
  /** Milliseconds of a clock that never jumps; only differences have a meaning. */
  monotonic(): number;
}

/** Converts Unix milliseconds to whole Unix seconds. */
export const toSeconds = (ms: number): number => Math.floor(ms / 1000);

/** Formats Unix milliseconds as RFC 3339 in UTC with milliseconds and `Z`. */
export const toTimestamp = (ms: number): string => new Date(ms).toISOString();
