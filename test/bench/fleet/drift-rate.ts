/** How many scheduled drift checks a second are done when all agents are always due. */
import { setTimeout as wait } from 'node:timers/promises';
import { atLeastTimes, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import type { FleetBench } from './fleet.js';
import { ALWAYS_DUE, checkAgents, prepare } from './rollout.js';

const ASKED = 'checks through the API, 8 at a time';
/** Milliseconds before and within each of the rounds that are measured. */
const REST = sized(3_000, 1_000);
const ROUND = sized(4_000, 2_000);
const ROUNDS = sized(3, 1);
/** Agents that are checked through the API. */
const CHECKED = sized(1_000, 4);

/** Leaves the orchestrator with a schedule that never rests, so it comes last. */
export async function measureDriftRate({ measure, fleet }: FleetBench, agents: number): Promise<void> {
  const what = `fleet: scheduled drift checks a second of ${agents} agents, 8 at a time, all overdue`;
  await measure([what], async () => {
    const made = await fleet();
    await prepare(made, agents, 'one', 1);
    const asked = (CHECKED * 1_000) / (await checkAgents(made, CHECKED));
    await made.orchestrator.restart(ALWAYS_DUE);
    await made.allConnected();
    await wait(REST);
    const rates: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await made.reset();
      const start = performance.now();
      await wait(ROUND);
      const { runs } = await made.counts();
      rates.push((runs.drift * 1_000) / (performance.now() - start));
    }
    const both = new Map([
      [OURS, rates],
      [ASKED, [asked]],
    ]);
    return [rowOf({ what, unit: '/s', runs: both, goal: atLeastTimes(0.9, ASKED) })];
  });
}
