/** How long it takes from the command to the prompt of the remote shell. */
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { BARE, OURS, open, type Target } from './targets.js';

const ROUNDS = 9;
const GOAL = 150;

export async function measureFirstByte(targets: readonly Target[]): Promise<readonly Row[]> {
  const times = new Map<string, number[]>(targets.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const target of targets) {
      const start = performance.now();
      const typist = await open(target);
      times.get(target.name)?.push(performance.now() - start);
      await typist.close();
    }
  }
  const { [OURS]: ours = 0, ...beside } = Object.fromEntries([...times].map(([name, all]) => [name, median(all)]));
  const isMet = ours - (beside[BARE] ?? 0) <= GOAL;
  const goal = `at most ${BARE} + ${GOAL} ms`;
  return [{ what: 'terminal: from the command to the prompt', unit: 'ms', ours, beside, goal, isMet }];
}
