/** Rollouts that change nothing: their time, their CPU, what they write, and how long other requests wait meanwhile. */
import { setTimeout as wait } from 'node:timers/promises';
import { Probe } from '../probe.js';
import { bytesWritten, cpuTime } from '../process-figures.js';
import { atMost, atMostTimes, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { percentile } from '../statistics.js';
import { BARE } from './bare-fleet.js';
import type { FleetBench } from './fleet.js';
import type { SimulatedFleet } from './simulated-fleet.js';

const KILOBYTE = 1_000;
/** Bytes of the messages of an apply, each way, that the limit exchanges. */
const MESSAGE = 2_048;
/** Maximum of the product. */
const ALL_AT_ONCE = 1_000;
/** The default of the product. */
const STANDARD = 32;
const CHECKS_AT_ONCE = 8;
/** Flags of an orchestrator that checks all agents again and again, several at a time. */
export const ALWAYS_DUE = ['--drift-interval', '1', '--drift-skip-recently-applied', '0'];
/** Milliseconds of such checks. */
const CHECKING = sized(3_000, 2_000);
/** Milliseconds in which the orchestrator finishes what it does after its answer. */
const AFTERWARDS = 500;

export async function measureRollout({ measure, fleet, bare, load }: FleetBench, agents: number): Promise<void> {
  const many = agents > ALL_AT_ONCE ? `${ALL_AT_ONCE} at a time` : 'all at once';
  const wide = `fleet: no-op rollout of 1 file over ${agents} agents, ${many}`;
  const narrow = `fleet: no-op rollout of 1 file over ${agents} agents, ${STANDARD} at a time`;
  const cpu = `fleet: CPU of the orchestrator for an applied agent of ${agents}, 1 file`;
  const rounds = sized(agents > ALL_AT_ONCE ? 3 : 5, 1);
  await measure([wide, narrow, cpu], async () => {
    const [made, limit] = [await fleet(), await bare()];
    await limit.growTo(agents);
    await prepare(made, agents, 'one', 1);
    const exchanges: number[] = [];
    const wideRuns: Rollout[] = [];
    const narrowRuns: Rollout[] = [];
    for (let round = 0; round < rounds; round += 1) {
      exchanges.push(await limit.exchange(MESSAGE));
      wideRuns.push(await rollOut(made, 'one', ALL_AT_ONCE));
      narrowRuns.push(await rollOut(made, 'one', STANDARD));
    }
    const times = (runs: readonly Rollout[]) =>
      new Map([
        [OURS, runs.map(({ ms }) => ms)],
        [BARE, exchanges],
      ]);
    const costs = new Map([[OURS, [...wideRuns, ...narrowRuns].map((run) => run.cpu / agents)]]);
    return [
      rowOf({ what: wide, unit: 'ms', runs: times(wideRuns), goal: agents >= 1_000 ? atMostTimes(6, BARE) : null }),
      rowOf({ what: narrow, unit: 'ms', runs: times(narrowRuns), goal: null }),
      rowOf({ what: cpu, unit: 'ms', runs: costs, goal: atMost(0.4, 'ms') }),
    ];
  });
  const waiting = `fleet: other requests during a rollout over ${agents} agents, p99`;
  await measure([waiting], async () => {
    const made = await fleet();
    await prepare(made, agents, 'one', 1);
    const probe = await Probe.prepare(made.orchestrator, await load());
    const waits: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      waits.push(percentile(await probe.during(() => rollOut(made, 'one', ALL_AT_ONCE)), 0.99));
    }
    return [rowOf({ what: waiting, unit: 'ms', runs: new Map([[OURS, waits]]), goal: atMost(100, 'ms') })];
  });
}

/** How the CPU for each agent grows with the fleet. */
export async function measureScaling({ measure, fleet }: FleetBench, few: number, many: number): Promise<void> {
  const what = `fleet: CPU of the orchestrator for an applied agent, ${many} agents beside ${few}`;
  await measure([what], async () => {
    const made = await fleet();
    const costsOf = async (agents: number): Promise<readonly number[]> => {
      await prepare(made, agents, 'one', 1);
      const costs: number[] = [];
      while (costs.length < sized(3, 1)) costs.push((await rollOut(made, 'one', ALL_AT_ONCE)).cpu / agents);
      return costs;
    };
    const beside = `${few} agents`;
    const fewer = await costsOf(few);
    const runs = new Map([
      [OURS, await costsOf(many)],
      [beside, fewer],
    ]);
    return [rowOf({ what, unit: 'ms', runs, goal: atMostTimes(1.3, beside) })];
  });
}

/** The cost of applies and drift checks of 100 files, and their records in the store. */
export async function measureGrowth({ measure, fleet }: FleetBench, agents: number): Promise<void> {
  const cpu = 'fleet: CPU of the orchestrator for an applied agent, 100 files';
  const stored = 'fleet: growth of the store by a no-op apply of 100 files';
  const written = 'fleet: bytes written to disk by a no-op apply of 100 files';
  await measure([cpu, stored, written], async () => {
    const made = await fleet();
    await prepare(made, agents, 'hundred', 100);
    const runs: (Rollout & { readonly stored: number; readonly written: number })[] = [];
    for (let round = 0; round < 3; round += 1) {
      const before = { stored: await made.orchestrator.storedBytes(), written: bytesWritten(made.orchestrator.pid) };
      const rollout = await rollOut(made, 'hundred', ALL_AT_ONCE);
      runs.push({
        ...rollout,
        stored: (await made.orchestrator.storedBytes()) - before.stored,
        written: bytesWritten(made.orchestrator.pid) - before.written,
      });
    }
    const each = (of: (run: (typeof runs)[number]) => number) => new Map([[OURS, runs.map((run) => of(run) / agents)]]);
    return [
      rowOf({ what: cpu, unit: 'ms', runs: each((run) => run.cpu), goal: atMost(0.8, 'ms') }),
      rowOf({ what: stored, unit: 'KB', runs: each((run) => run.stored / KILOBYTE), goal: atMost(2, 'KB') }),
      rowOf({ what: written, unit: 'KB', runs: each((run) => run.written / KILOBYTE), goal: null }),
    ];
  });
  const checked = 'fleet: growth of the store by a scheduled in-sync drift check of 100 files';
  const checkedWritten = 'fleet: bytes written to disk by a scheduled in-sync drift check of 100 files';
  await measure([checked, checkedWritten], async () => {
    const made = await fleet();
    await prepare(made, agents, 'hundred', 100);
    const { orchestrator } = made;
    // The first check of an agent is recorded in the audit log as well.
    await checkAgents(made, agents);
    await orchestrator.restart(ALWAYS_DUE);
    await made.allConnected();
    await wait(CHECKING);
    const sizes: number[] = [];
    const writes: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      await made.reset();
      const before = { stored: await orchestrator.storedBytes(), written: bytesWritten(orchestrator.pid) };
      await wait(CHECKING);
      const { runs } = await made.counts();
      sizes.push(((await orchestrator.storedBytes()) - before.stored) / runs.drift / KILOBYTE);
      writes.push((bytesWritten(orchestrator.pid) - before.written) / runs.drift / KILOBYTE);
    }
    await orchestrator.restart();
    await made.allConnected();
    return [
      rowOf({ what: checked, unit: 'KB', runs: new Map([[OURS, sizes]]), goal: atMost(0.3, 'KB') }),
      rowOf({ what: checkedWritten, unit: 'KB', runs: new Map([[OURS, writes]]), goal: null }),
    ];
  });
}

interface Rollout {
  readonly ms: number;
  /** CPU time of the orchestrator in milliseconds. */
  readonly cpu: number;
}

/** Grows the fleet and applies the module once, which may remove what another module left. */
export async function prepare(fleet: SimulatedFleet, agents: number, module: string, files: number): Promise<void> {
  await fleet.growTo(agents);
  await fleet.orchestrator.uploadFiles(module, files);
  await rollOut(fleet, module, ALL_AT_ONCE);
}

/** Applies a module to the whole fleet. Throws unless it succeeds everywhere. */
export async function rollOut(fleet: SimulatedFleet, module: string, concurrency: number): Promise<Rollout> {
  const { api, pid } = fleet.orchestrator;
  const before = { at: performance.now(), cpu: cpuTime(pid) };
  const { summary } = await api.call('applyRollout', {
    body: { selector: 'platform=linux', modules: [module], concurrency, allow_removals: 20_000, wait: true },
  });
  const ms = performance.now() - before.at;
  if (summary.succeeded !== fleet.size) throw new Error(`the rollout ended with ${JSON.stringify(summary)}`);
  await wait(AFTERWARDS);
  return { ms, cpu: cpuTime(pid) - before.cpu };
}

/** Checks the first agents for drift, several at a time. Returns the milliseconds. */
export async function checkAgents({ orchestrator: { api } }: SimulatedFleet, count: number): Promise<number> {
  const agents = (await api.call('listAgents', { query: { limit: count } })).map(({ node_id }) => node_id);
  const start = performance.now();
  const checkRest = async () => {
    for (let node = agents.shift(); node !== undefined; node = agents.shift()) {
      await api.call('checkDrift', { params: { node_id: node } });
    }
  };
  await Promise.all(Array.from({ length: CHECKS_AT_ONCE }, checkRest));
  return performance.now() - start;
}
