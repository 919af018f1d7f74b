/** How many agents a second enrol with a token and are approved through the API. */
import { atLeast, OURS, rowOf } from '../row.js';
import { BARE } from './bare-fleet.js';
import type { FleetBench } from './fleet.js';

export async function measureEnrolment({ measure, fleet, bare }: FleetBench, agents: number): Promise<void> {
  const rate = `fleet: enrol with a token and approve, up to ${agents} agents`;
  const cpu = `fleet: CPU of the orchestrator for each enrolment, up to ${agents} agents`;
  await measure([rate, cpu], async () => {
    const [made, limit] = [await fleet(), await bare()];
    await limit.growTo(agents);
    await made.growTo(agents);
    const growth = made.growths.at(-1);
    const connects = limit.growths.at(-1);
    const grown = made.growths.reduce((sum, one) => sum + one.agents, 0);
    if (growth === undefined || connects === undefined || grown !== agents) throw new Error('the fleet has not grown');
    const rates = new Map([
      [OURS, [(growth.agents * 1_000) / growth.ms]],
      [BARE, [(connects.clients * 1_000) / connects.ms]],
    ]);
    const costs = new Map([[OURS, [growth.cpu / growth.agents]]]);
    return [
      rowOf({ what: rate, unit: '/s', runs: rates, goal: atLeast(500, '/s') }),
      rowOf({ what: cpu, unit: 'ms', runs: costs, goal: null }),
    ];
  });
}
