/** The cost of applies that change nothing on PostgreSQL, beside the embedded store in the same run. */
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { noPostgres, TestPostgres } from '../../support/postgres.js';
import { cpuTime } from '../process-figures.js';
import { type Bench, OURS, type Part, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { prepare, rollOut } from './rollout.js';
import { SimulatedFleet } from './simulated-fleet.js';
import { applyTo, nodesOf, QUIET } from './statements.js';

const AGENTS = sized(200, 3);
const ROUNDS = sized(5, 1);
/** Applies that an operator asks for one by one. */
const SERIES = sized(100, 3);
const ALL_AT_ONCE = 1_000;
const SQLITE = 'SQLite';

export const stores: Part = {
  name: 'stores',
  summary: '200 simulated agents with the store on PostgreSQL, beside SQLite',
  run: measureStores,
};

interface Figures {
  /** Milliseconds of a rollout. */
  readonly rollout: number;
  /** CPU of the orchestrator and of PostgreSQL for each agent, in milliseconds. */
  readonly cpu: number;
  readonly serverCpu: number;
  /** Milliseconds of an apply through the API. */
  readonly apply: number;
}

async function measureStores({ measure, missing }: Bench): Promise<void> {
  const names = {
    rollout: `stores: no-op rollout of 1 file over ${AGENTS} agents, on PostgreSQL`,
    cpu: `stores: CPU of the orchestrator for an applied agent of ${AGENTS}, on PostgreSQL`,
    serverCpu: `stores: CPU of PostgreSQL for an applied agent of ${AGENTS}`,
    apply: 'stores: no-op apply of one agent through the API, on PostgreSQL',
  };
  if (noPostgres !== null) {
    for (const name of Object.values(names)) missing(name, noPostgres);
    return;
  }
  await measure(Object.values(names), async () => {
    const server = await TestPostgres.start({ parent: tmpdir() });
    const fleets: SimulatedFleet[] = [];
    try {
      const url = await server.createDatabase('orch');
      fleets.push(await SimulatedFleet.start(['--store', url, ...QUIET]));
      fleets.push(await SimulatedFleet.start(QUIET));
      for (const fleet of fleets) await prepare(fleet, AGENTS, 'one', 1);
      const [ours, beside]: [Figures[], Figures[]] = [[], []];
      for (let round = 0; round <= ROUNDS; round += 1) {
        for (const [index, fleet] of fleets.entries()) {
          const figures = await figuresOf(fleet, server);
          // The first round warms up.
          if (round > 0) (index === 0 ? ours : beside).push(figures);
        }
      }
      const runs = (of: (figures: Figures) => number) =>
        new Map([
          [OURS, ours.map(of)],
          [SQLITE, beside.map(of)],
        ]);
      return [
        rowOf({ what: names.rollout, unit: 'ms', runs: runs(({ rollout }) => rollout), goal: null }),
        rowOf({ what: names.cpu, unit: 'ms', runs: runs(({ cpu }) => cpu), goal: null }),
        rowOf({
          what: names.serverCpu,
          unit: 'ms',
          runs: new Map([[OURS, ours.map(({ serverCpu }) => serverCpu)]]),
          goal: null,
        }),
        rowOf({ what: names.apply, unit: 'ms', runs: runs(({ apply }) => apply), goal: null }),
      ];
    } finally {
      for (const fleet of fleets) await fleet.stop();
      await server.remove();
    }
  });
}

async function figuresOf(fleet: SimulatedFleet, server: TestPostgres): Promise<Figures> {
  const before = cpuOfServer(server);
  const { ms, cpu } = await rollOut(fleet, 'one', ALL_AT_ONCE);
  const serverCpu = (cpuOfServer(server) - before) / AGENTS;
  const [nodeId = ''] = await nodesOf(fleet);
  const start = performance.now();
  for (let count = 0; count < SERIES; count += 1) await applyTo(fleet, nodeId);
  return { rollout: ms, cpu: cpu / AGENTS, serverCpu, apply: (performance.now() - start) / SERIES };
}

/** Returns the CPU time of all processes of the server that run now. */
function cpuOfServer({ pid }: TestPostgres): number {
  const children = execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);
  return [pid, ...children.map(Number)].reduce((sum, one) => sum + timeOf(one), 0);
}

function timeOf(pid: number): number {
  try {
    return cpuTime(pid);
  } catch {
    return 0;
  }
}
