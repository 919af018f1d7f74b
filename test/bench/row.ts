/** One thing that was measured, with what ran beside it in the same call. */

export type Unit = 'ms' | 'MB/s' | 'MB' | 'KB' | 'bytes' | '';

export interface Row {
  /** The same in every run: runs are compared by it. */
  readonly what: string;
  readonly unit: Unit;
  readonly ours: number;
  /** Programs that do the same, and programs that do nothing else: their limit. */
  readonly beside: Readonly<Record<string, number>>;
  /** In words, with the numbers of this run where it depends on others; null when there is none. */
  readonly goal: string | null;
  /** Null when there is no goal, or the peer that it names did not run. */
  readonly isMet: boolean | null;
}

/** A part of the benchmarks: `npm run bench -- NAME`. */
export interface Part {
  readonly name: string;
  readonly summary: string;
  /** @param say tells what is being done, for whoever waits */
  run(options: PartOptions): Promise<readonly Row[]>;
}

export interface PartOptions {
  readonly say: (line: string) => void;
  /** Measure other programs too, where they are installed. */
  readonly peers: boolean;
  /** A part that measures several things for long measures those alone whose name holds it. */
  readonly only?: string;
}

/** At most so many times a peer's number; null when that did not run. */
export function atMost(ours: number, factor: number, peer: number | undefined): boolean | null {
  return peer === undefined ? null : ours <= factor * peer;
}
