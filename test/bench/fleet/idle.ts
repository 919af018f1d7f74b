/** The cost of an orchestrator while nothing happens. */
import { setTimeout as wait } from 'node:timers/promises';
import { cpuTime, wakeUps } from '../process-figures.js';
import { atMost, type Goal, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import type { FleetBench } from './fleet.js';

/** Milliseconds after the start or the last agent, and of each of the rounds that are measured. */
const REST = sized(8_000, 200);
const ROUND = sized(8_000, 1_000);
const ROUNDS = sized(3, 1);

export async function measureIdle({ measure, fleet }: FleetBench, agents: number): Promise<void> {
  const cpu = `fleet: idle orchestrator with ${agents} agents, CPU a minute`;
  const woken = `fleet: idle orchestrator with ${agents} agents, wake-ups a second`;
  await measure([cpu, woken], async () => {
    const made = await fleet();
    await made.growTo(agents);
    await wait(REST);
    const { pid } = made.orchestrator;
    const times: number[] = [];
    const wakes: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = { at: performance.now(), cpu: cpuTime(pid), wakes: wakeUps(pid) };
      await wait(ROUND);
      const seconds = (performance.now() - before.at) / 1_000;
      times.push(((cpuTime(pid) - before.cpu) * 60) / seconds);
      wakes.push((wakeUps(pid) - before.wakes) / seconds);
    }
    const empty = (goal: Goal) => (agents === 0 ? goal : null);
    return [
      rowOf({ what: cpu, unit: 'ms', runs: new Map([[OURS, times]]), goal: empty(atMost(60, 'ms')) }),
      rowOf({ what: woken, unit: '/s', runs: new Map([[OURS, wakes]]), goal: empty(atMost(5, '/s')) }),
    ];
  });
}
