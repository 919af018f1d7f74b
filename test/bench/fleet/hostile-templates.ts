/** Plans of modules whose templates are made to keep the orchestrator busy: how long every other request waits. */
import { setTimeout as wait } from 'node:timers/promises';
import { isFault } from '../../../src/kernel/fault.js';
import { HOSTILE_MODULES } from '../../support/hostile-modules.js';
import { Probe } from '../probe.js';
import { atMost, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { percentile } from '../statistics.js';
import type { FleetBench } from './fleet.js';

const ROUNDS = sized(3, 1);
const MODULES = [...HOSTILE_MODULES].slice(0, sized(HOSTILE_MODULES.size, 1));
const NOTHING = 'nothing else happens';

export async function measureHostileTemplates({ measure, fleet, load }: FleetBench): Promise<void> {
  const longest = `blocks: longest wait beside plans of ${MODULES.length} hostile modules`;
  const usual = `blocks: wait of 99 in 100 requests beside plans of ${MODULES.length} hostile modules`;
  await measure([longest, usual], async () => {
    const made = await fleet();
    await made.growTo(1);
    const { api } = made.orchestrator;
    const [agent] = await api.call('listAgents', { query: { limit: 1 } });
    const probe = await Probe.prepare(made.orchestrator, await load());
    const plan = async (content: string) => {
      const body = { modules: ['hostile'], sources: [{ name: 'hostile', content }] };
      await api.call('planAgent', { params: { node_id: agent?.node_id ?? '' }, body });
    };
    const all = new Map(
      [OURS, NOTHING].map((program) => [program, { longest: [] as number[], usual: [] as number[] }]),
    );
    const note = (program: string, waits: readonly number[]) => {
      all.get(program)?.longest.push(Math.max(...waits));
      all.get(program)?.usual.push(percentile(waits, 0.99));
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      const started = performance.now();
      const waits = await probe.during(async () => {
        for (const [, content] of MODULES) {
          await plan(content).catch((error: unknown) => {
            if (!isFault(error)) throw error;
          });
        }
      });
      note(OURS, waits);
      note(NOTHING, await probe.during(() => wait(performance.now() - started)));
    }
    const runs = (of: 'longest' | 'usual') => new Map([...all].map(([program, found]) => [program, found[of]]));
    return [
      rowOf({ what: longest, unit: 'ms', runs: runs('longest'), goal: atMost(30, 'ms') }),
      rowOf({ what: usual, unit: 'ms', runs: runs('usual'), goal: atMost(20, 'ms') }),
    ];
  });
}
