/** Throughput of one large file. */
import { randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { alternate, atLeastTimes, OURS, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { MACHINE, SCP } from './jump.js';
import { type Place, timeOf } from './place.js';

const ROUNDS = sized(3, 1);
const MEGABYTES = sized(1000, 4);
const UP = 'copy: a large file to a machine';
const DOWN = 'copy: a large file from a machine';

export const LARGE_ROWS = [UP, DOWN];

export async function measureLarge({ root, fleet, jump }: Place): Promise<readonly Row[]> {
  const { env, name } = fleet;
  const directory = join(root, 'large');
  mkdirSync(directory);
  const [source, target] = [join(directory, 'source'), join(directory, 'target')];
  plant(source);
  const rate = async (command: readonly string[]) => {
    rmSync(target, { force: true });
    return MEGABYTES / (await timeOf(command, env));
  };
  const measured = async (what: string, ours: readonly string[], theirs: readonly string[] | undefined) => {
    const programs = new Map([[OURS, () => rate(ours)]]);
    if (theirs !== undefined) programs.set(SCP, () => rate(theirs));
    const runs = await alternate(ROUNDS, programs);
    return rowOf({ what, unit: 'MB/s', runs, goal: atLeastTimes(0.8, SCP) });
  };
  try {
    return [
      await measured(UP, fleet.orch('cp', source, `${name}:${target}`), jump?.scp(source, `${MACHINE}:${target}`)),
      await measured(DOWN, fleet.orch('cp', `${name}:${source}`, target), jump?.scp(`${MACHINE}:${source}`, target)),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Writes a file that no program can compress. */
export function plant(path: string, megabytes: number = MEGABYTES): void {
  const file = openSync(path, 'w');
  try {
    for (let written = 0; written < megabytes; written += 1) writeSync(file, randomBytes(1_000_000));
  } finally {
    closeSync(file);
  }
}
