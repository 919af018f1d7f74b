/** Time as a port: wall clock for records, monotonic clock for deadlines. */
export interface Clock {
  /** Unix time in milliseconds. */
  now(): number;
  /** Milliseconds of a clock that never jumps; only differences mean anything. */
  monotonic(): number;
}

/** Whole Unix seconds of a millisecond time. */
export const toSeconds = (ms: number): number => Math.floor(ms / 1000);

/** RFC 3339 in UTC with milliseconds and `Z`. */
export const toTimestamp = (ms: number): string => new Date(ms).toISOString();
