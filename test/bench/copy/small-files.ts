/** Time of many small files. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alternate, atMostTimes, OURS, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { MACHINE, RSYNC } from './jump.js';
import { type Place, timeOf } from './place.js';

const ROUNDS = sized(5, 1);
const FILES = sized(10_000, 20);
const DIRECTORIES = sized(100, 2);
/** Bytes of the largest file; the mean is half of it. */
const LARGEST = 3_200;
const UP = 'copy: 10,000 small files to a machine';
const DOWN = 'copy: 10,000 small files from a machine';

export const SMALL_ROWS = [UP, DOWN];

export async function measureSmall({ root, fleet, jump }: Place): Promise<readonly Row[]> {
  const { env, name } = fleet;
  const directory = join(root, 'small');
  const [source, target] = [join(directory, 'source'), join(directory, 'target')];
  for (let file = 0; file < FILES; file += 1) {
    const into = join(source, `directory-${file % DIRECTORIES}`);
    if (file < DIRECTORIES) mkdirSync(into, { recursive: true });
    writeFileSync(join(into, `file-${file}`), randomBytes((file * 37) % LARGEST));
  }
  const time = async (command: readonly string[]) => {
    rmSync(target, { recursive: true, force: true });
    return await timeOf(command, env);
  };
  const measured = async (what: string, ours: readonly string[], theirs: readonly string[] | undefined) => {
    const programs = new Map([[OURS, () => time(ours)]]);
    if (theirs !== undefined) programs.set(RSYNC, () => time(theirs));
    const runs = await alternate(ROUNDS, programs);
    return rowOf({ what, unit: 's', runs, goal: atMostTimes(1.5, RSYNC) });
  };
  const there = (path: string) => `${MACHINE}:${path}`;
  try {
    return [
      await measured(
        UP,
        fleet.orch('cp', '-r', source, `${name}:${target}`),
        jump?.rsync?.(`${source}/`, there(target)),
      ),
      await measured(
        DOWN,
        fleet.orch('cp', '-r', `${name}:${source}`, target),
        jump?.rsync?.(`${there(source)}/`, target),
      ),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
