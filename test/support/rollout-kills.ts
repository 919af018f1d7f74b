/** Kills a real orchestrator at random moments of rollouts over real agents, and looks at what became of them. */
import { randomInt } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { OperationDetail } from '../../src/contract/operations.js';
import type { RolloutDetail } from '../../src/contract/rollouts.js';
import { World } from '../api/world.js';
import { until } from './orch.js';

const NAMES = ['a1', 'a2', 'a3', 'a4', 'a5'] as const;

/** Milliseconds after the begin of a rollout, or after a restart, within which the orchestrator is killed. */
const KILLED_WITHIN = 1500;

/** Bounds of the rollouts, which take turns. */
const PACES = [
  {},
  { concurrency: 1 },
  { waves: [1, '50%'] },
  { canary: 1, soak_secs: 1 },
  { max_failures: '40%', concurrency: '50%' },
  { when_online_secs: 600, concurrency: 2 },
];

const portOf = (address: string) => String(/:(\d+)$/.exec(address)?.[1]);

/** One fleet that outlives many orchestrators. */
export class KilledFleet {
  private readonly world = new World();
  private readonly nodes = new Map<string, string>();
  private ports: readonly string[] = [];

  async begin(): Promise<void> {
    await this.world.start();
    const { agent_address, api_url } = this.world.ready;
    this.ports = ['--agent-port', portOf(agent_address), '--api-port', portOf(api_url)];
    mkdirSync(this.witness(), { recursive: true });
    for (const name of NAMES) {
      const { nodeId } = await this.world.startAgent(name);
      this.nodes.set(nodeId, name);
      await this.world.gives(
        'setAgentStatus',
        { params: { node_id: nodeId }, body: { status: 'approved', name } },
        200,
      );
    }
  }

  dispose(): Promise<void> {
    return this.world.sandbox.dispose();
  }

  /** Rolls out again and again until the orchestrator was killed so many times. Returns the number of rollouts. */
  async survive(kills: number): Promise<number> {
    let killed = 0;
    let round = 0;
    while (killed < kills) {
      round += 1;
      // A kill behind the end of the last rollout has cut the agents, and one that begins now would miss them.
      await this.allConnected();
      const id = await this.rollOut(round);
      // Up to three kills of one rollout.
      const times = Math.min(kills - killed, randomInt(1, 4));
      for (let time = 0; time < times; time += 1) {
        await sleep(randomInt(KILLED_WITHIN));
        await this.kill();
        killed += 1;
      }
      await this.check(id, round);
    }
    return round;
  }

  private async allConnected(): Promise<void> {
    await eventually(async () => {
      const agents: readonly Agent[] = await this.world.gives('listAgents', {}, 200);
      return agents.every(({ connected }) => connected);
    }, 'all are connected');
  }

  private witness(...parts: readonly string[]): string {
    return this.world.sandbox.path('witness', ...parts);
  }

  /** Begins a rollout whose script leaves a line on each machine. Returns its ID. */
  private async rollOut(round: number): Promise<string> {
    const script = `sleep 0.2; echo ${round} >> ${this.witness()}/\${{ agent.name }}`;
    const content = [
      'name: step',
      'supports: [{platform: linux}]',
      'resources:',
      '  - id: leave-a-line',
      `    resource: {script: {program: sh, apply: ${JSON.stringify(script)}}}`,
      '',
    ].join('\n');
    await this.world.gives('uploadModule', { body: { name: 'step', content } }, 201);
    const pace = PACES[round % PACES.length];
    const body = { selector: 'platform=linux', modules: ['step'], allow_removals: 9, wait: false, ...pace };
    return (await this.world.gives('applyRollout', { body }, 202)).rollout_id;
  }

  private async kill(): Promise<void> {
    await this.world.server.stop('SIGKILL');
    await this.world.start(this.ports);
  }

  /** Waits for the end of a rollout: every agent has it, once. */
  private async check(id: string, round: number): Promise<void> {
    let rollout: RolloutDetail | undefined;
    await eventually(async () => {
      rollout = await this.world.gives('getRollout', { params: { rollout_id: id } }, 200);
      return rollout?.finished_at !== null || rollout?.state === 'halted';
    }, `rollout ${round} has its end`);
    const ends = rollout?.agents.map(({ name, state, error }) => ({ name, state, error }));
    const expected = NAMES.map((name) => ({ name, state: 'succeeded', error: null }));
    expect(ends, `rollout ${round}`).toEqual(expected);
    expect(rollout).toMatchObject({ state: 'succeeded', counts: { agents: NAMES.length, succeeded: NAMES.length } });
    const query = { rollout: id, limit: '500' };
    const { operations } = await this.world.gives('listOperations', { query }, 200);
    const own = operations.map(({ node_id, status }: OperationDetail) => [this.nodes.get(node_id), status]);
    expect(own.toSorted()).toEqual(NAMES.map((name) => [name, 'succeeded']));
    for (const name of NAMES) {
      const file = this.witness(name);
      const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
      expect(lines.map(Number), `what ${name} did`).toEqual(Array.from({ length: round }, (_, index) => index + 1));
    }
  }
}

/** Waits for something that needs all agents. After several kills an agent pauses for up to a minute, longer than one wait. */
async function eventually(condition: () => Promise<boolean>, what: string): Promise<void> {
  for (let wait = 1; ; wait += 1) {
    try {
      return await until(condition, what);
    } catch (error) {
      if (wait === 4) throw error;
    }
  }
}
