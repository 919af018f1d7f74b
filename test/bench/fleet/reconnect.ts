/** A fleet that comes back at once after a restart of the orchestrator. */
import { setTimeout as wait } from 'node:timers/promises';
import { Probe } from '../probe.js';
import { alternate, atMost, atMostTimes, numbersOf, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { percentile } from '../statistics.js';
import { BARE } from './bare-fleet.js';
import type { FleetBench } from './fleet.js';
import type { SimulatedFleet } from './simulated-fleet.js';

const KILOBYTE = 1_000;
/** Milliseconds after the last agent. */
const REST = sized(5_000, 200);
const ROUNDS = sized(3, 1);

export async function measureReconnect({ measure, fleet, bare, load }: FleetBench, agents: number): Promise<void> {
  const names = {
    all: `fleet: reconnection of ${agents} agents after a restart, until all are back`,
    first: `fleet: reconnection of ${agents} agents after a restart, until the first is back`,
    pause: `fleet: reconnection of ${agents} agents after a restart, longest pause until nine in ten are back`,
    failed: `fleet: reconnection of ${agents} agents after a restart, failed dials`,
    waiting: `fleet: requests of the API during a reconnection of ${agents} agents, p99`,
  };
  const memory = `fleet: memory of the orchestrator for each of ${agents} agents`;
  await measure([...Object.values(names), memory], async () => {
    const [made, limit] = [await fleet(), await bare()];
    await limit.growTo(agents);
    await made.growTo(agents);
    const probe = await Probe.prepare(made.orchestrator, await load());
    const runs = await alternate<Partial<Return>>(
      agents > 1_000 ? 1 : ROUNDS,
      new Map<string, () => Promise<Partial<Return>>>([
        [BARE, () => limit.restart()],
        [OURS, () => restart(made, probe)],
      ]),
    );
    await wait(REST);
    const of = (member: keyof Return) =>
      new Map([...numbersOf(runs, (one) => one[member] ?? Number.NaN)].filter(([, all]) => !all.some(Number.isNaN)));
    const memories = new Map([
      [OURS, [made.memoryEach() / KILOBYTE]],
      [BARE, [limit.memoryEach() / KILOBYTE]],
    ]);
    return [
      rowOf({ what: names.all, unit: 'ms', runs: of('all'), goal: atMost(10_000, 'ms') }),
      rowOf({ what: names.first, unit: 'ms', runs: of('first'), goal: null }),
      rowOf({ what: names.pause, unit: 'ms', runs: of('pause'), goal: atMost(1_000, 'ms') }),
      rowOf({ what: names.failed, unit: '', runs: of('failed'), goal: null }),
      rowOf({ what: names.waiting, unit: 'ms', runs: of('waiting'), goal: atMost(250, 'ms') }),
      rowOf({ what: memory, unit: 'KB', runs: memories, goal: atMostTimes(1.5, BARE) }),
    ];
  });
}

/** One return of a fleet. Times are milliseconds since the stop began, `pause` since the orchestrator was ready. */
interface Return {
  readonly first: number;
  readonly all: number;
  readonly pause: number;
  readonly failed: number;
  readonly waiting: number;
}

async function restart(fleet: SimulatedFleet, probe: Probe): Promise<Return> {
  await fleet.reset();
  const start = Date.now();
  await fleet.orchestrator.restart();
  const ready = Date.now();
  const waits = await probe.during(() => fleet.allConnected(), true);
  const { arrivals, failedDials } = await fleet.counts();
  const sorted = arrivals.toSorted((one, other) => one - other);
  const most = sorted.slice(0, Math.ceil(fleet.size * 0.9));
  return {
    first: (sorted[0] ?? start) - start,
    all: (sorted[fleet.size - 1] ?? start) - start,
    pause: Math.max(...most.map((at, index) => at - (most[index - 1] ?? ready))),
    failed: failedDials,
    waiting: percentile(waits, 0.99),
  };
}
