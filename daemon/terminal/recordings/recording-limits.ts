/** Limits of the writer of recordings. */

/** Numbers of the recorder. Sizes are in bytes, times in milliseconds. */
export const RECORDING_LIMITS = {
  /** Time for which output is collected into one event. */
  coalesce: 10,
  /** Time and size after which collected lines are written. */
  writeAfter: 50,
  writeBytes: 256 * 1024,
  /** Maximum output between two checkpoints. */
  checkpoint: 64 * 1024,
  /** Size and time after which written data is synced. */
  syncBytes: 1024 * 1024,
  syncAfter: 1000,
  /** Time and size after which the free space is checked. */
  askDiskAfter: 10_000,
  askDiskBytes: 16 * 1024 * 1024,
} as const;
