/** A machine that only the orchestrator applies to, because its assignment is enforced. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Agent } from '../../src/contract/agents.js';
import type { Assignment } from '../../src/contract/assignments.js';
import type { MaintenanceWindow } from '../../src/contract/maintenance-windows.js';
import type { Operation } from '../../src/contract/operations.js';
import type { DriftDetail } from '../../src/contract/runs.js';
import { until } from '../support/orch.js';
import type { Fleet } from './fleet.js';
import type { Fate, Ledger } from './ledger.js';
import { ENFORCED } from './machines.js';
import type { Ask } from './requests.js';
import { countIn, linesIn } from './witness.js';

const MODULE = 'load-kept';
const SELECTOR = `load=${ENFORCED}`;
/** The window holds whatever a clock says. */
const ALWAYS = { starts_at: 0, ends_at: 253_402_300_799 };
const LONGEST_LOOK = 50;

const fileOf = (fleet: Fleet) => join(fleet.site(ENFORCED), 'kept');
const contentOf = (value: string) => `${value}\n`.repeat(200);

const moduleOf = (fleet: Fleet, value: string): string =>
  JSON.stringify({
    name: MODULE,
    supports: [{ platform: 'linux' }],
    resources: [
      { resource: { 'directory-unix': { path: fleet.site(ENFORCED) } } },
      { resource: { 'file-unix': { path: fileOf(fleet), content: contentOf(value) } } },
      {
        id: 'kept',
        resource: { script: { program: 'sh', apply: `echo ${value} >>'${fleet.witness(ENFORCED)}/kept'` } },
      },
    ],
  });

const runsOf = (fleet: Fleet, value: string) => countIn(linesIn(join(fleet.witness(ENFORCED), 'kept')), value);

/** Assigns the module to the machine. */
export async function enforce(fleet: Fleet): Promise<void> {
  await fleet.world.gives('uploadModule', { body: { name: MODULE, content: moduleOf(fleet, 'begin') } }, 201);
  const tag = { params: { node_id: fleet.nodes[ENFORCED], key: 'load' }, body: { value: ENFORCED } };
  await fleet.world.gives('setTag', tag, 204);
  const body = { name: MODULE, selector: SELECTOR, modules: [MODULE], mode: 'enforce' };
  await fleet.world.gives('createAssignment', { body }, 201);
}

/** The load of this machine. A step publishes a value, publishes one within a maintenance window, or changes the file by hand. */
export class EnforcedLoad {
  private readonly fleet: Fleet;
  private readonly ledger: Ledger;
  private readonly ask: Ask;

  constructor(fleet: Fleet, ledger: Ledger, ask: Ask) {
    this.fleet = fleet;
    this.ledger = ledger;
    this.ask = ask;
  }

  async step(round: number): Promise<void> {
    const steps: readonly (() => Promise<unknown>)[] = [this.publish, this.changeByHand, this.publishInWindow];
    await steps[round % steps.length]?.call(this);
    await sleep(300);
  }

  private async publish(): Promise<{ readonly value: string; readonly fate: Fate }> {
    const value = this.ledger.fresh('kept');
    const { fate } = await this.ask('uploadModule', { body: { name: MODULE, content: moduleOf(this.fleet, value) } });
    this.ledger.kept.push({ value, fate });
    return { value, fate };
  }

  private async changeByHand(): Promise<void> {
    try {
      writeFileSync(fileOf(this.fleet), 'by hand\n');
    } catch {
      // It is gone for a moment, as its disk is, or the disk is full.
    }
    await this.ask('checkDrift', { params: { node_id: this.fleet.nodes[ENFORCED] } });
  }

  /** A module that is published during an acknowledged window waits for its end, whatever restarts meanwhile. */
  private async publishInWindow(): Promise<void> {
    const { era } = this.ledger;
    const body = { reason: 'nothing changes', ...ALWAYS, selector: SELECTOR };
    const window = await this.ask('createMaintenanceWindow', { body });
    if (window.fate !== 'acknowledged') return;
    const { value, fate } = await this.publish();
    if (fate === 'acknowledged') {
      // The orchestrator has looked at the machine, and would have begun an apply.
      let isBehind = false;
      for (let look = 0; look < LONGEST_LOOK && !isBehind; look += 1) {
        const { answer } = await this.ask('getAgent', { params: { node_id: this.fleet.nodes[ENFORCED] } });
        isBehind = answer?.json?.standing === 'behind';
        await sleep(50);
      }
      if (era === this.ledger.era && runsOf(this.fleet, value) > 0) {
        this.ledger.violations.push(`${value} was applied although a maintenance window was acknowledged`);
      }
    }
    await this.ask('removeMaintenanceWindow', { params: { id: window.answer?.json.id } });
  }
}

/** The machine gets what was published last without anybody's apply, is repaired, and says truly how it stands. */
export async function checkEnforced(fleet: Fleet, ledger: Ledger, violated: (sentence: string) => void): Promise<void> {
  const { world } = fleet;
  const windows: readonly MaintenanceWindow[] = await world.gives('listMaintenanceWindows', {}, 200);
  for (const { id } of windows) await world.gives('removeMaintenanceWindow', { params: { id } }, 204);
  const assignments: readonly Assignment[] = await world.gives('listAssignments', {}, 200);
  for (const { name, stopped_reason } of assignments) {
    if (stopped_reason !== null) await world.gives('resumeAssignment', { params: { name } }, 200);
  }
  const { content } = await world.gives('getModule', { params: { name: MODULE } }, 200);
  const value = /echo (\S+) /.exec(content)?.[1] ?? '';
  if (!mayBeCurrent(value, ledger)) violated(`the module ${MODULE} has the content of ${value}`);
  await becomesCurrent(fleet, value, violated);
  if (runsOf(fleet, value) === 0) violated(`the machine is in sync, and the script of ${value} did not run`);
  // Nothing that was published meanwhile is awaited after this.
  ledger.kept.length = 0;
  ledger.kept.push({ value, fate: 'acknowledged' });
}

/** The newest acknowledged value is current, or a later one that was never acknowledged. */
function mayBeCurrent(value: string, { kept }: Ledger): boolean {
  const newest = kept.map(({ fate }) => fate).lastIndexOf('acknowledged');
  const found = kept.findIndex((one) => one.value === value);
  return newest === -1 || (found >= newest && kept[found]?.fate !== 'refused');
}

async function becomesCurrent(fleet: Fleet, value: string, violated: (sentence: string) => void): Promise<void> {
  const params = { node_id: fleet.nodes[ENFORCED] };
  const agent = (): Promise<Agent> => fleet.world.gives('getAgent', { params }, 200);
  const isCurrent = async () =>
    (await agent()).standing === 'in_sync' && readFileSync(fileOf(fleet), 'utf8') === contentOf(value);
  if (await waitsForSomebody(fleet, await agent())) await applyByHand(fleet);
  try {
    await until(async () => existsSync(fileOf(fleet)) && (await isCurrent()), 'the machine is in sync', 100);
  } catch {
    const { standing, standing_reason } = await agent();
    if (!(await waitsForSomebody(fleet, await agent()))) {
      violated(`the enforced machine stays ${standing} (${standing_reason}), and nothing says that it waits`);
    }
    await applyByHand(fleet);
    if (!(await isCurrent())) violated(`the enforced machine is ${(await agent()).standing} after an apply by hand`);
  }
  const drift: DriftDetail = await whenFree(() => fleet.world.call('checkDrift', { params }));
  if (drift.status !== 'in_sync') violated(`the enforced machine is in sync, and its drift is ${drift.status}`);
}

/** After a failed apply the next one waits a minute and more; after some it stops and says so. */
async function waitsForSomebody(fleet: Fleet, agent: Agent): Promise<boolean> {
  if (agent.automation_stopped !== null) return true;
  const params = { node_id: fleet.nodes[ENFORCED] };
  const { operations } = await fleet.world.gives('listAgentOperations', { params, query: { limit: '1' } }, 200);
  const [newest]: readonly Operation[] = operations;
  return newest !== undefined && newest.finished_at !== null && newest.status !== 'succeeded';
}

async function applyByHand(fleet: Fleet): Promise<void> {
  const params = { node_id: fleet.nodes[ENFORCED] };
  const { status } = await whenFree(() => fleet.world.call('applyAgent', { params, body: { modules: [MODULE] } }));
  if (status !== 'succeeded') throw new Error(`an apply of the enforced machine is ${status}`);
}

/** Repeats a request while another operation of the machine is in progress. */
async function whenFree<T>(request: () => Promise<{ readonly status: number; readonly json: T }>): Promise<T> {
  let answer = await request();
  await until(async () => {
    if (answer.status === 409) answer = await request();
    return answer.status !== 409;
  }, 'the enforced machine is free');
  if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.stringify(answer.json)}`);
  return answer.json;
}
