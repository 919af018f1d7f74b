/** How long applies, plans and drift checks of one agent take, from the request at the API to its answer. */
import { cpuTime } from '../process-figures.js';
import { atMost, type Goal, OURS, type Row, rowOf } from '../row.js';
import { sized } from '../sized.js';
import type { Fleet } from '../terminal/fleet.js';
import { applyModules, uploadFiles } from './many-files.js';

interface Size {
  readonly files: number;
  readonly rounds: number;
  readonly noOp: Goal | null;
}

export const SIZES: readonly Size[] = [
  { files: sized(100, 2), rounds: sized(5, 1), noOp: atMost(50, 'ms') },
  { files: sized(1_000, 3), rounds: sized(3, 1), noOp: null },
  { files: sized(10_000, 4), rounds: sized(2, 1), noOp: null },
];

const FIRST = 'first apply';
const NO_OP = 'no-op apply';
const PLAN = 'plan';
const DRIFT = 'drift check';
const VERBS = [FIRST, NO_OP, PLAN, DRIFT];
const AGENT_CPU = 'CPU of the agent';
const ORCHESTRATOR_CPU = 'CPU of the orchestrator';
/** Runs of everything but the first apply in each round. */
const REPEATED = sized(3, 1);

const nameOf = (verb: string, { files }: Size): string => `agent: ${verb} of ${files.toLocaleString('en')} files`;

export const throughRows = (size: Size): readonly string[] =>
  VERBS.flatMap((verb) => {
    const name = nameOf(verb, size);
    return [name, `${name}, ${AGENT_CPU}`, `${name}, ${ORCHESTRATOR_CPU}`];
  });

interface Cost {
  readonly wall: number;
  readonly agent: number;
  readonly orchestrator: number;
}

export async function measureThrough(fleet: Fleet, size: Size): Promise<readonly Row[]> {
  const modules = await uploadFiles(fleet, size.files);
  const params = { node_id: fleet.nodeId };
  const work: Readonly<Record<string, () => Promise<unknown>>> = {
    [FIRST]: () => applyModules(fleet, modules),
    [NO_OP]: () => applyModules(fleet, modules),
    [PLAN]: () => fleet.api.call('planAgent', { params, body: { modules: [...modules] } }),
    [DRIFT]: () => fleet.api.call('checkDrift', { params }),
  };
  const costs = new Map<string, Cost[]>(VERBS.map((verb) => [verb, []]));
  for (let round = 0; round < size.rounds; round += 1) {
    for (const verb of VERBS) {
      const times = verb === FIRST ? 1 : REPEATED;
      costs.get(verb)?.push(await costOf(fleet, times, work[verb] as () => Promise<unknown>));
    }
    await applyModules(fleet, []);
  }
  return VERBS.flatMap((verb) => rowsOf(nameOf(verb, size), costs.get(verb) ?? [], verb === NO_OP ? size.noOp : null));
}

/** Returns the mean of several runs, because the kernel counts CPU time in steps of 10 ms. */
async function costOf(
  { agentPid, orchestratorPid }: Fleet,
  times: number,
  work: () => Promise<unknown>,
): Promise<Cost> {
  const before = { agent: cpuTime(agentPid), orchestrator: cpuTime(orchestratorPid), now: performance.now() };
  for (let run = 0; run < times; run += 1) await work();
  return {
    wall: (performance.now() - before.now) / times,
    agent: (cpuTime(agentPid) - before.agent) / times,
    orchestrator: (cpuTime(orchestratorPid) - before.orchestrator) / times,
  };
}

function rowsOf(what: string, costs: readonly Cost[], goal: Goal | null): readonly Row[] {
  const runs = (number: (cost: Cost) => number) => new Map([[OURS, costs.map(number)]]);
  return [
    rowOf({ what, unit: 'ms', runs: runs(({ wall }) => wall), goal }),
    rowOf({ what: `${what}, ${AGENT_CPU}`, unit: 'ms', runs: runs(({ agent }) => agent), goal: null }),
    rowOf({ what: `${what}, ${ORCHESTRATOR_CPU}`, unit: 'ms', runs: runs((cost) => cost.orchestrator), goal: null }),
  ];
}
