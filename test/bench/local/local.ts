/** How fast files are brought about on this machine, and how fast it is found that nothing is to be done. */
import { CFENGINE } from '../peers.js';
import { alternate, atMostTimes, type Bench, type Goal, numbersOf, OURS, type Part, type Row, rowOf } from '../row.js';
import { peakMemory, type Taken } from '../run-program.js';
import { sized } from '../sized.js';
import { Site, type Verb } from './site.js';

interface Size {
  readonly files: number;
  readonly rounds: number;
  /** At most so many times what cf-agent takes; null where there is no goal. */
  readonly noOp: number | null;
  readonly plan: number | null;
  readonly first: number | null;
}

const SIZES: readonly Size[] = [
  { files: sized(100, 2), rounds: sized(9, 1), noOp: 1.5, plan: null, first: null },
  { files: sized(1_000, 3), rounds: sized(5, 1), noOp: 0.8, plan: 0.8, first: 1 },
  { files: sized(10_000, 4), rounds: sized(3, 1), noOp: 0.55, plan: 0.6, first: 0.6 },
];
/** Rounds of a program that takes seconds. */
const SLOW_ROUNDS = sized(2, 1);

export const local: Part = {
  name: 'local',
  summary: 'orch plan and apply --local of 100 to 10,000 files; beside loops in Node and C, CFEngine and Puppet',
  run: async (bench) => {
    for (const size of SIZES) await measureSize(size, bench);
  },
};

async function measureSize({ files, rounds, noOp, plan, first }: Size, bench: Bench): Promise<void> {
  const { measure, shared } = bench;
  const shown = files.toLocaleString('en');
  const site = shared(
    async () => new Site(files, bench),
    (made) => made.remove(),
  );
  const inSync = async (verb: Verb) => {
    const made = await site();
    await made.settle();
    return alternateOn(made, rounds, (name) => made.run(name, verb));
  };
  const noOpNames = namesOf(`local: no-op apply of ${shown} files`);
  await measure(noOpNames, async () => rowsOf(noOpNames, await inSync('apply'), noOp));
  const planNames = namesOf(`local: plan of ${shown} files, nothing to do`);
  await measure(planNames, async () => rowsOf(planNames, await inSync('plan'), plan));
  const memory = `local: peak memory of a no-op apply of ${shown} files`;
  await measure([memory], async () => {
    const made = await site();
    await made.settle();
    return [await memoryOf(memory, made)];
  });
  const firstNames = namesOf(`local: first apply of ${shown} files`);
  await measure(firstNames, async () => {
    const made = await site();
    const runs = await alternateOn(made, rounds, (name) => {
      made.clear();
      return made.run(name, 'apply', { isFirst: true });
    });
    return rowsOf(firstNames, runs, first);
  });
}

/** Wall time and time of the processor. */
type Names = readonly [wall: string, cpu: string];
const namesOf = (what: string): Names => [what, `${what}, CPU`];

type Runs = ReadonlyMap<string, readonly Taken[]>;

async function alternateOn(site: Site, rounds: number, run: (name: string) => Promise<Taken>): Promise<Runs> {
  const programs = (isSlow: boolean) =>
    new Map(site.names.filter((name) => site.isSlow(name) === isSlow).map((name) => [name, () => run(name)]));
  // Once, so that no program pays for what the first run leaves to all others.
  await run(OURS);
  return new Map([...(await alternate(rounds, programs(false))), ...(await alternate(SLOW_ROUNDS, programs(true)))]);
}

function rowsOf([wall, cpu]: Names, runs: Runs, factor: number | null): readonly Row[] {
  const goal: Goal | null = factor === null ? null : atMostTimes(factor, CFENGINE);
  return [
    rowOf({ what: wall, unit: 'ms', runs: numbersOf(runs, (taken) => taken.wall), goal }),
    rowOf({ what: cpu, unit: 'ms', runs: numbersOf(runs, (taken) => taken.cpu), goal: null }),
  ];
}

async function memoryOf(what: string, site: Site): Promise<Row> {
  const runs = new Map<string, readonly number[]>();
  for (const name of site.names) {
    const { words, env } = site.commandOf(name, 'apply');
    const peak = await peakMemory(words, { env });
    if (peak > 0) runs.set(name, [peak / 1e6]);
  }
  return rowOf({ what, unit: 'MB', runs, goal: null });
}
