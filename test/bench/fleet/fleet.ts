/** Simulated fleets on a real orchestrator: what it carries, how fast, and what it costs. */
import { Program } from '../programs.js';
import type { Bench, Part } from '../row.js';
import { sized } from '../sized.js';
import { BareFleet } from './bare-fleet.js';
import { measureDriftRate } from './drift-rate.js';
import { measureEnrolment } from './enrolment.js';
import { measureHostileTemplates } from './hostile-templates.js';
import { measureIdle } from './idle.js';
import { measureLargeApply } from './large-apply.js';
import { measureReconnect } from './reconnect.js';
import { measureGrowth, measureRollout, measureScaling } from './rollout.js';
import { SimulatedFleet } from './simulated-fleet.js';
import { measureStatements } from './statements.js';

/** Agents of the fleets. */
const FEW = sized(200, 2);
const MANY = sized(1_000, 3);
const MOST = sized(5_000, 4);

/** The shared parts of the measurements; each is made at its first use. */
export interface FleetBench extends Pick<Bench, 'measure' | 'say'> {
  readonly fleet: () => Promise<SimulatedFleet>;
  /** The limit beside it. */
  readonly bare: () => Promise<BareFleet>;
  /** Makes requests to the API. */
  readonly load: () => Promise<Program>;
}

const sharedBy = ({ measure, say, shared }: Bench): FleetBench => ({
  measure,
  say,
  fleet: shared(
    () => SimulatedFleet.start(),
    (made) => made.stop(),
  ),
  bare: shared(
    () => BareFleet.start(),
    (made) => made.stop(),
  ),
  load: shared(
    async () => new Program('http-load'),
    (made) => made.stop(),
  ),
});

export const fleet: Part = {
  name: 'fleet',
  summary:
    '200 and 1,000 simulated agents: rollouts, enrolment, reconnection, drift checks, idle costs; beside bare ws',
  run: async (bench) => {
    const shared = sharedBy(bench);
    await measureIdle(shared, 0);
    await measureRollout(shared, FEW);
    await measureGrowth(shared, FEW);
    await measureStatements(shared, FEW);
    await measureEnrolment(shared, MANY);
    await measureRollout(shared, MANY);
    await measureReconnect(shared, MANY);
    await measureIdle(shared, MANY);
    await measureDriftRate(shared, MANY);
  },
};

export const largeFleet: Part = {
  name: 'fleet-5000',
  summary: '5,000 simulated agents: rollouts, enrolment, reconnection, idle costs; beside bare ws',
  run: async (bench) => {
    const shared = sharedBy(bench);
    await measureScaling(shared, MANY, MOST);
    await measureEnrolment(shared, MOST);
    await measureRollout(shared, MOST);
    await measureReconnect(shared, MOST);
    await measureIdle(shared, MOST);
    await measureDriftRate(shared, MOST);
  },
};

export const largeApply: Part = {
  name: 'blocks',
  summary:
    'longest wait of other requests during an upload of 2,000 resources, applies of 10,000 files and hostile modules; memory after',
  run: async (bench) => {
    const shared = sharedBy(bench);
    await measureLargeApply(shared);
    await measureHostileTemplates(shared);
  },
};
