/** The SQL statements of applies that change nothing, and the CPU of those that an operator asks for one by one. */
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { StatementLog } from '../../support/statements.js';
import { cpuTime } from '../process-figures.js';
import { atMost, OURS, rowOf } from '../row.js';
import { sized } from '../sized.js';
import { median } from '../statistics.js';
import type { FleetBench } from './fleet.js';
import { prepare, rollOut } from './rollout.js';
import { SimulatedFleet } from './simulated-fleet.js';

/** Flags of an orchestrator that does nothing by itself. */
export const QUIET = ['--no-drift', '--metrics-poll-interval', '86400'];
const ROUNDS = sized(5, 1);
/** Applies between two readings of the CPU, whose clock ticks every 10 ms. */
const SERIES = sized(200, 4);
/** Maximum of the product. */
const ALL_AT_ONCE = 1_000;
const MODULE = 'one';
const STATEMENTS = 14;
const AFTERWARDS = 500;
/** Characters of a statement that are printed. */
const WIDTH = 160;
/** Least number for an agent at which a statement of a rollout is printed. */
const SHOWN = 0.02;

export async function measureStatements({ measure, say, fleet }: FleetBench, agents: number): Promise<void> {
  const single = 'fleet: SQL statements of a no-op apply of one agent through the API';
  const share = `fleet: SQL statements of an applied agent of ${agents}, 1 file`;
  await measure([single, share], async () => {
    const file = join(tmpdir(), `orch-bench-statements-${process.pid}`);
    const log = new StatementLog(file);
    const made = await SimulatedFleet.start(QUIET, log.env);
    try {
      await prepare(made, agents, MODULE, 1);
      const [nodeId = ''] = await nodesOf(made);
      const singles: (readonly string[])[] = [];
      const shares: (readonly string[])[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        singles.push(await log.during(() => applyTo(made, nodeId)));
        shares.push(await log.during(() => rollOut(made, MODULE, ALL_AT_ONCE)));
      }
      const counts = singles.map(({ length }) => length);
      const typical = singles.find(({ length }) => length === median(counts)) ?? [];
      say(`${single}:`);
      for (const sql of typical) say(`  ${shorten(sql)}`);
      say(`${share}, each and its number for an agent:`);
      for (const [sql, count] of countsOf(shares.at(-1) ?? [])) {
        if (count >= agents * SHOWN) say(`  ${(count / agents).toFixed(2)} ${shorten(sql)}`);
      }
      return [
        rowOf({ what: single, unit: '', runs: new Map([[OURS, counts]]), goal: atMost(STATEMENTS, '') }),
        rowOf({
          what: share,
          unit: '',
          runs: new Map([[OURS, shares.map(({ length }) => length / agents)]]),
          goal: atMost(STATEMENTS, ''),
        }),
      ];
    } finally {
      await made.stop();
      rmSync(file, { force: true });
    }
  });
  const cpu = 'fleet: CPU of the orchestrator for a no-op apply of one agent through the API';
  await measure([cpu], async () => {
    const made = await fleet();
    await prepare(made, agents, MODULE, 1);
    const nodes = (await nodesOf(made)).slice(0, SERIES);
    const costs: number[] = [];
    for (let round = 0; round <= ROUNDS; round += 1) {
      const before = cpuTime(made.orchestrator.pid);
      for (const nodeId of nodes) await applyTo(made, nodeId);
      await wait(AFTERWARDS);
      // The first round warms up.
      if (round > 0) costs.push((cpuTime(made.orchestrator.pid) - before) / nodes.length);
    }
    return [rowOf({ what: cpu, unit: 'ms', runs: new Map([[OURS, costs]]), goal: null })];
  });
}

/** Returns how often each statement ran, the most frequent first. */
function countsOf(statements: readonly string[]): readonly (readonly [sql: string, count: number])[] {
  const counts = new Map<string, number>();
  for (const sql of statements) counts.set(sql, (counts.get(sql) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one);
}

const shorten = (sql: string): string => (sql.length > WIDTH ? `${sql.slice(0, WIDTH - 1)}…` : sql);

export const nodesOf = async ({ orchestrator: { api } }: SimulatedFleet): Promise<readonly string[]> =>
  (await api.call('listAgents', {})).map(({ node_id }) => node_id);

export async function applyTo({ orchestrator: { api } }: SimulatedFleet, nodeId: string): Promise<void> {
  const { status } = await api.call('applyAgent', { params: { node_id: nodeId }, body: { modules: [MODULE] } });
  if (status !== 'succeeded') throw new Error(`the apply ended as ${status}`);
}
