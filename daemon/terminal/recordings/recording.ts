/** The head of a recording, and its end. */

/** End of a recording. */
export interface RecordingEnd {
  readonly state: 'complete' | 'truncated' | 'failed';
  /** Hex SHA-256 of the whole plain file; null when it cannot be read. */
  readonly sha256: string | null;
}

export interface RecordingHead {
  readonly sessionId: string;
  /** Unix milliseconds. */
  readonly openedAt: number;
  readonly cols: number;
  readonly rows: number;
  readonly term: string;
  readonly shell: string | null;
  readonly command: readonly string[] | null;
  readonly nodeId: string;
  readonly nodeName: string | null;
  readonly operator: string;
  /** Kept output of a command on pipes; null for a terminal, whose whole output is kept. */
  readonly kept: KeptOutput | null;
}

export type KeptOutput = (typeof KEPT_OUTPUT)[number];

/** Kept output of commands on pipes: all, text alone, or none. The rest is recorded as size and hash. */
export const KEPT_OUTPUT = ['all', 'text', 'none'] as const;
