/** Rows of the result: one measured thing, the programs that ran beside it, and its goal. */
import { median } from './statistics.js';

export type Unit = 'us' | 'ms' | 's' | '/s' | 'MB/s' | 'MB' | 'KB' | 'bytes' | '%' | '';

/** The program under test, among those that ran. */
export const OURS = 'orch';

/** Numbers by the name of the program. */
export type Numbers = Readonly<Record<string, number>>;
export type Range = readonly [least: number, most: number];

export interface Row {
  /** The same in every run: runs are compared by it, and it is chosen by it. */
  readonly what: string;
  readonly unit: Unit;
  /** The median where there were several runs, as are those beside it. */
  readonly ours: number;
  /** Programs that do the same, and programs that do nothing else: their limit. */
  readonly beside: Numbers;
  /** Least and most of several runs, ours by the name `orch`. */
  readonly spread?: Readonly<Record<string, Range>>;
  /** Ours divided by each of those beside it: the median over the rounds where all ran in turns. */
  readonly ratios?: Numbers;
  /** In words; null when there is none. */
  readonly goal: string | null;
  /** Null when there is no goal, or the program that it names did not run. */
  readonly isMet: boolean | null;
}

export interface Goal {
  readonly text: string;
  isMet(ours: number, ratios: Numbers): boolean | null;
}

export const atMost = (most: number, unit: string): Goal => ({
  text: `at most ${most} ${unit}`.trim(),
  isMet: (ours) => ours <= most,
});

export const atLeast = (least: number, unit: string): Goal => ({
  text: `at least ${least} ${unit}`.trim(),
  isMet: (ours) => ours >= least,
});

/** At most so many times the number of a program beside. */
export const atMostTimes = (factor: number, program: string): Goal => ({
  text: `at most ${factor} x ${program}`,
  isMet: (_, { [program]: ratio }) => (ratio === undefined ? null : ratio <= factor),
});

export const atLeastTimes = (factor: number, program: string): Goal => ({
  text: `at least ${factor} x ${program}`,
  isMet: (_, { [program]: ratio }) => (ratio === undefined ? null : ratio >= factor),
});

export interface RunsOf {
  readonly what: string;
  readonly unit: Unit;
  /** Every run of each program, in turns. Ours is `orch`. */
  readonly runs: ReadonlyMap<string, readonly number[]>;
  readonly goal: Goal | null;
}

/** Makes the row of several runs: medians, spread, and ratios in pairs, because other work on the machine slows whole rounds. */
export function rowOf({ what, unit, runs, goal }: RunsOf): Row {
  const all = runs.get(OURS);
  if (all === undefined) throw new Error(`${what}: ${OURS} did not run`);
  const others = [...runs].filter(([name]) => name !== OURS);
  const ratios = Object.fromEntries(others.map(([name, theirs]) => [name, ratioOf(all, theirs)]));
  const ours = median(all);
  return {
    what,
    unit,
    ours,
    beside: Object.fromEntries(others.map(([name, theirs]) => [name, median(theirs)])),
    spread: spreadOf(runs),
    ratios,
    goal: goal?.text ?? null,
    isMet: goal?.isMet(ours, ratios) ?? null,
  };
}

function spreadOf(runs: ReadonlyMap<string, readonly number[]>): Readonly<Record<string, Range>> {
  const several = [...runs].filter(([, values]) => values.length > 1);
  return Object.fromEntries(several.map(([name, values]) => [name, [Math.min(...values), Math.max(...values)]]));
}

function ratioOf(ours: readonly number[], theirs: readonly number[]): number {
  if (ours.length !== theirs.length) return median(ours) / median(theirs);
  return median(ours.map((value, round) => value / (theirs[round] as number)));
}

/** Runs all programs in turns and keeps the result of every run. */
export async function alternate<Result>(
  rounds: number,
  programs: ReadonlyMap<string, () => Promise<Result>>,
): Promise<ReadonlyMap<string, readonly Result[]>> {
  const results = new Map<string, Result[]>([...programs.keys()].map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, run] of programs) results.get(name)?.push(await run());
  }
  return results;
}

/** The runs of each program, with one number for each. */
export const numbersOf = <Result>(
  runs: ReadonlyMap<string, readonly Result[]>,
  number: (result: Result) => number,
): ReadonlyMap<string, readonly number[]> => new Map([...runs].map(([name, all]) => [name, all.map(number)]));

/** A part of the benchmarks: `npm run bench -- NAME`. */
export interface Part {
  readonly name: string;
  readonly summary: string;
  run(bench: Bench): Promise<void>;
}

/** Tools of a part. */
export interface Bench {
  /** Prints progress on standard error. */
  say(line: string): void;
  /** True to measure installed programs of others too. */
  readonly peers: boolean;
  /** Records what cannot be measured here, and why; it is printed below the table. */
  missing(name: string, reason: string): void;
  /**
   * Runs a measurement if one of its rows is chosen. `rows` has the names of all rows that it makes. If it fails, its first chosen
   * row counts as not met, and the other measurements go on.
   */
  measure(rows: readonly string[], run: () => Promise<readonly Row[]>): Promise<void>;
  /** Returns a function that makes something at its first call. It is ended with the part. */
  shared<Thing>(make: () => Promise<Thing>, end: (thing: Thing) => Promise<void> | void): () => Promise<Thing>;
}
