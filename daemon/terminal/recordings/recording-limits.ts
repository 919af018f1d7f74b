/** Numbers of how recordings are written. Sizes are bytes, times milliseconds. */
export const RECORDING_LIMITS = {
  /** Output is gathered that long into one event. */
  coalesce: 10,
  /** Lines wait that long before they are written, unless they come to so much. */
  writeAfter: 50,
  writeBytes: 256 * 1024,
  /** Output between two checkpoints. */
  checkpoint: 64 * 1024,
  /** What is written is made durable when it has come to so much, or after that long. */
  syncBytes: 1024 * 1024,
  syncAfter: 1000,
  /** How often the free space of the disk is looked at. */
  askDiskAfter: 10_000,
  askDiskBytes: 16 * 1024 * 1024,
} as const;
