/** How long it takes from the command to the prompt of the remote shell. */
import { alternate, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { BARE, open, type Target } from './targets.js';

const ROUNDS = sized(9, 1);
const GOAL = 150;
const WHAT = 'terminal: from the command to the prompt';

export const FIRST_BYTE_ROWS = [WHAT];

export async function measureFirstByte(targets: readonly Target[]): Promise<readonly Row[]> {
  const runs = await alternate(ROUNDS, new Map(targets.map((target) => [target.name, () => timeOf(target)])));
  const row = rowOf({ what: WHAT, unit: 'ms', runs, goal: null });
  const isMet = row.ours - (row.beside[BARE] ?? 0) <= GOAL;
  return [{ ...row, goal: `at most ${BARE} + ${GOAL} ms`, isMet }];
}

async function timeOf(target: Target): Promise<number> {
  const start = performance.now();
  const typist = await open(target);
  const time = performance.now() - start;
  await typist.close();
  return time;
}
