/** What the thread that searches recordings is told, and tells. */

export interface SearchWorkerData {
  /** A regular expression, which is one. */
  readonly pattern: string;
  readonly ignoreCase: boolean;
}

/** Look through a recording. */
export interface ToSearchWorker {
  /** Of the plain file. */
  readonly path: string;
  /** Bytes of the file that count; null for all. */
  readonly length: number | null;
  /** Of the whole plain file, hex, as the store has it; null while it is not known. */
  readonly sha256: string | null;
  /** Matches at most. */
  readonly most: number;
}

export type FromSearchWorker =
  /** `at` is in seconds from the start. */
  | { readonly is: 'match'; readonly at: number; readonly line: string }
  /** It was looked through, or could not be; `isAltered` when it is not what the store says. */
  | { readonly is: 'done'; readonly problem: string | null; readonly isAltered: boolean };
