/** A real agent of a real orchestrator: its costs while idle, and the time of its work from the API. */
import type { Part } from '../row.js';
import { startFleet } from '../terminal/fleet.js';
import { APPLIED_ROWS, IDLE_ROWS, measureAfterApplies, measureIdle } from './idle.js';
import { measureThrough, SIZES, throughRows } from './through-agent.js';

export const agent: Part = {
  name: 'agent',
  summary:
    'an idle agent, memory after applies, and applies, plans and drift checks of 100 to 10,000 files from the API',
  run: async ({ measure, shared }) => {
    await measure(IDLE_ROWS, measureIdle);
    await measure(APPLIED_ROWS, measureAfterApplies);
    const fleet = shared(startFleet, (made) => made.stop());
    for (const size of SIZES) await measure(throughRows(size), async () => measureThrough(await fleet(), size));
  },
};
