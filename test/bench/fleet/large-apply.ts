/** Large work for one agent or one upload: how long every other request waits, and what memory is kept. */
import { setTimeout as wait } from 'node:timers/promises';
import { moduleOfFiles } from '../orchestrator.js';
import { Probe } from '../probe.js';
import { residentMemory } from '../process-figures.js';
import { atMost, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import type { FleetBench } from './fleet.js';
import { SimulatedFleet } from './simulated-fleet.js';

const MEGABYTE = 1e6;
const ROUNDS = sized(5, 1);
const UPLOADED = sized(2_000, 20);
const MODULES = sized(10, 2);
const FILES = sized(1_000, 10);
/** Milliseconds that requests are sent beside nothing, and after the apply before memory is read. */
const QUIET = sized(2_000, 200);
const REST = sized(30_000, 200);
const NOTHING = 'nothing else happens';

export async function measureLargeApply({ measure, fleet, load }: FleetBench): Promise<void> {
  const upload = `blocks: longest wait during an upload of ${UPLOADED} resources`;
  await measure([upload], async () => {
    const made = await fleet();
    const probe = await Probe.prepare(made.orchestrator, await load());
    const runs = new Map([
      [OURS, [] as number[]],
      [NOTHING, [] as number[]],
    ]);
    for (let round = 0; round < ROUNDS; round += 1) {
      const name = `upload-${round}`;
      const body = { name, content: moduleOfFiles(name, UPLOADED) };
      runs.get(NOTHING)?.push(await longestWait(probe, () => wait(QUIET)));
      runs.get(OURS)?.push(await longestWait(probe, () => made.orchestrator.api.call('uploadModule', { body })));
    }
    return [rowOf({ what: upload, unit: 'ms', runs, goal: atMost(20, 'ms') })];
  });
  const first = `blocks: longest wait during the first apply of ${MODULES * FILES} files`;
  const again = `blocks: longest wait during a no-op apply of ${MODULES * FILES} files`;
  const time = `blocks: no-op apply of ${MODULES * FILES} files, from the API to its end`;
  await measure([first, again, time], async () => {
    const made = await fleet();
    await prepareLarge(made);
    const probe = await Probe.prepare(made.orchestrator, await load());
    const firstWait = await longestWait(probe, () => applyLarge(made));
    const times: number[] = [];
    const waits: number[] = [];
    const quiet: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      quiet.push(await longestWait(probe, () => wait(QUIET)));
      waits.push(
        await longestWait(probe, async () => {
          times.push(await applyLarge(made));
        }),
      );
    }
    const both = new Map([
      [OURS, waits],
      [NOTHING, quiet],
    ]);
    return [
      rowOf({ what: first, unit: 'ms', runs: new Map([[OURS, [firstWait]]]), goal: null }),
      rowOf({ what: again, unit: 'ms', runs: both, goal: atMost(30, 'ms') }),
      rowOf({ what: time, unit: 'ms', runs: new Map([[OURS, times]]), goal: null }),
    ];
  });
  const memory = `blocks: memory of the orchestrator ${REST / 1_000} s after one apply of ${MODULES * FILES} files`;
  await measure([memory], async () => {
    // One of its own, as memory that was taken before would hide what this takes.
    const made = await SimulatedFleet.start();
    try {
      await prepareLarge(made);
      await applyLarge(made);
      await wait(REST);
      const megabytes = residentMemory(made.orchestrator.pid) / MEGABYTE;
      return [rowOf({ what: memory, unit: 'MB', runs: new Map([[OURS, [megabytes]]]), goal: atMost(140, 'MB') })];
    } finally {
      await made.stop();
    }
  });
}

const NAMES = Array.from({ length: MODULES }, (_, index) => `files-${index}`);

async function prepareLarge(fleet: SimulatedFleet): Promise<void> {
  await fleet.growTo(1);
  for (const name of NAMES) await fleet.orchestrator.uploadFiles(name, FILES);
}

/** Applies all modules to the only agent. Returns the milliseconds. */
async function applyLarge({ orchestrator: { api } }: SimulatedFleet): Promise<number> {
  const [agent] = await api.call('listAgents', { query: { limit: 1 } });
  const start = performance.now();
  const { status } = await api.call('applyAgent', {
    params: { node_id: agent?.node_id ?? '' },
    body: { modules: NAMES, allow_removals: 20_000, wait: true },
  });
  if (status !== 'succeeded') throw new Error(`the apply ended as ${status}`);
  return performance.now() - start;
}

const longestWait = async (probe: Probe, work: () => Promise<unknown>): Promise<number> =>
  Math.max(...(await probe.during(work)));
