/** Lists of many agents: the whole command, and how long other requests wait meanwhile. */
import { setTimeout as wait } from 'node:timers/promises';
import { Probe } from '../probe.js';
import { alternate, atMost, numbersOf, OURS, rowOf } from '../row.js';
import { runProgram } from '../run-program.js';
import { sized } from '../sized.js';
import type { ApiBench } from './api.js';

const FEW = sized(1_000, 3);
const MANY = sized(5_000, 5);
const ROUNDS = sized(5, 1);
const NODE = 'node -e 0';
const NOTHING = 'nothing else happens';
const QUIET = sized(2_000, 200);

export async function measureAgentsList({ measure, filled, load }: ApiBench): Promise<void> {
  const few = `api: orch agents list of ${FEW} agents`;
  const many = `api: orch agents list of ${MANY} agents`;
  await measure([few, many], async () => {
    const made = await filled();
    const { env } = made.orchestrator;
    const list = made.orchestrator.command('agents', 'list');
    const timesOf = async (agents: number) => {
      await made.growTo(agents);
      // The first command logs in.
      await runProgram(list, { env });
      const programs = new Map([
        [OURS, () => runProgram(list, { env })],
        [NODE, () => runProgram([process.execPath, '-e', '0'], { env })],
      ]);
      return numbersOf(await alternate(ROUNDS, programs), ({ wall }) => wall);
    };
    const timesOfFew = await timesOf(FEW);
    const timesOfMany = new Map([...(await timesOf(MANY)), [`${FEW} agents`, timesOfFew.get(OURS) ?? []] as const]);
    return [
      rowOf({ what: few, unit: 'ms', runs: timesOfFew, goal: null }),
      rowOf({ what: many, unit: 'ms', runs: timesOfMany, goal: atMost(300, 'ms') }),
    ];
  });
  const blocked = `api: longest wait while all pages of ${MANY} agents are read`;
  await measure([blocked], async () => {
    const made = await filled();
    await made.growTo(MANY);
    const probe = await Probe.prepare(made.orchestrator, await load());
    const { api } = made.orchestrator;
    const readAll = async () => {
      let after: string | undefined;
      for (let read = 0; read < MANY; ) {
        const page = await api.call('listAgents', { query: after === undefined ? {} : { after } });
        after = page.at(-1)?.node_id;
        read += page.length;
      }
    };
    const runs = new Map([
      [OURS, [] as number[]],
      [NOTHING, [] as number[]],
    ]);
    for (let round = 0; round < ROUNDS; round += 1) {
      runs.get(NOTHING)?.push(Math.max(...(await probe.during(() => wait(QUIET)))));
      runs.get(OURS)?.push(Math.max(...(await probe.during(readAll))));
    }
    return [rowOf({ what: blocked, unit: 'ms', runs, goal: atMost(50, 'ms') })];
  });
}
