/** Costs of an idle agent, and its memory after applies. */
import { setTimeout as wait } from 'node:timers/promises';
import { startBare } from '../memory.js';
import { cpuTime, residentMemory, wakeUps } from '../process-figures.js';
import { atMost, atMostTimes, type Goal, OURS, type Row, rowOf, type Unit } from '../row.js';
import { highWaterMark } from '../run-program.js';
import { sized } from '../sized.js';
import { type Fleet, startFleet } from '../terminal/fleet.js';
import { applyModules, uploadFiles } from './many-files.js';

const BARE = 'bare Node with ws over TLS';
/** Milliseconds between the start and the measurement. */
const REST = sized(15_000, 200);
const MINUTE = sized(60_000, 1_000);
/** Milliseconds between an apply and the measurement; the engine's thread has ended by then. */
const AFTER = sized(80_000, 200);
const CPU = 'agent: CPU of an idle minute';
const WAKE_UPS = 'agent: wake-ups of an idle second';

interface Applied {
  readonly files: number;
  readonly what: string;
  readonly peak: string;
  readonly goal: Goal;
}

const applied = (files: number, goal: Goal): Applied => ({
  files,
  what: `agent: memory 80 s after applying ${files.toLocaleString('en')} files`,
  peak: `agent: peak memory of applying ${files.toLocaleString('en')} files`,
  goal,
});

const APPLIED = [applied(sized(100, 2), atMostTimes(1.2, BARE)), applied(sized(10_000, 3), atMost(65, 'MB'))];

export const IDLE_ROWS = [CPU, WAKE_UPS];
export const APPLIED_ROWS = APPLIED.flatMap(({ what, peak }) => [what, peak]);

export async function measureIdle(): Promise<readonly Row[]> {
  const fleet = await startFleet();
  const bare = startBare();
  try {
    await wait(REST);
    const pids = [fleet.agentPid, bare.pid as number];
    const before = pids.map(figuresOf);
    await wait(MINUTE);
    const after = pids.map(figuresOf);
    const used = after.map(({ cpu, wakes }, index) => ({
      cpu: cpu - (before[index]?.cpu ?? 0),
      wakes: (wakes - (before[index]?.wakes ?? 0)) / (MINUTE / 1_000),
    }));
    return [row(CPU, 'ms', [used[0]?.cpu, used[1]?.cpu]), row(WAKE_UPS, '/s', [used[0]?.wakes, used[1]?.wakes])];
  } finally {
    bare.kill();
    await fleet.stop();
  }
}

const figuresOf = (pid: number) => ({ cpu: cpuTime(pid), wakes: wakeUps(pid) });

/** Uses an agent of its own for each number of files, and waits once for all. */
export async function measureAfterApplies(): Promise<readonly Row[]> {
  const bare = startBare();
  const fleets: Fleet[] = [];
  try {
    for (const { files } of APPLIED) {
      const fleet = await startFleet();
      fleets.push(fleet);
      await applyModules(fleet, await uploadFiles(fleet, files));
    }
    await wait(AFTER);
    const limit = residentMemory(bare.pid as number) / 1e6;
    return APPLIED.flatMap(({ what, peak, goal }, index) => {
      const pid = fleets[index]?.agentPid ?? 0;
      return [
        row(what, 'MB', [residentMemory(pid) / 1e6, limit], goal),
        row(peak, 'MB', [highWaterMark(pid) / 1e6, limit]),
      ];
    });
  } finally {
    bare.kill();
    for (const fleet of fleets) await fleet.stop();
  }
}

function row(
  what: string,
  unit: Unit,
  [ours = 0, bare = 0]: readonly (number | undefined)[],
  goal: Goal | null = null,
): Row {
  const runs = new Map([
    [OURS, [ours]],
    [BARE, [bare]],
  ]);
  return rowOf({ what, unit, runs, goal });
}
