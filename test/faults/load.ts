/** Work that goes on while faults happen. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EnforcedLoad } from './enforced.js';
import type { Fleet } from './fleet.js';
import type { Ledger } from './ledger.js';
import { AGENTS, type AgentName } from './machines.js';
import { type Ask, askOf } from './requests.js';

/** Lines that an exec prints, half of them after a while. */
const EXEC_LINES = 20;

export const linesOf = (marker: string): string =>
  Array.from({ length: EXEC_LINES }, (_, line) => `${marker} ${line}\n`).join('');

/** The file's content: long enough to be torn, and telling by which apply it was written. */
export const contentOf = (value: string): string => `${value}\n`.repeat(500);

/** Module of both agents, which rollouts apply. */
export const SHARED = 'load-shared';
/** Secret in a file that another user owns, and what that file contains. */
export const SECRET = 'LOAD_PASSWORD';
export const SECRET_VALUE = 'a value that is nowhere else 4711';
const SECRET_LINES = 100;
export const secretContent = `password = ${SECRET_VALUE}\n`.repeat(SECRET_LINES);
/** Owner of that file. */
export const OWNER = { user: 'nobody', group: 'nogroup' } as const;

/**
 * The module of one agent: a file, a file of another user with a secret, a script that runs once for each value, and a script that
 * the first file's change triggers. Both append to files outside of what faults reach.
 */
export function moduleOf(fleet: Fleet, agent: AgentName, value: string): string {
  const site = fleet.site(agent);
  const witness = fleet.witness(agent);
  const secret = {
    path: `${site}/secret`,
    content: `password = \${{ secrets.${SECRET} }}\n`.repeat(SECRET_LINES),
    owner: OWNER.user,
    group: OWNER.group,
    mode: '0640',
  };
  return JSON.stringify({
    name: `load-${agent}`,
    supports: [{ platform: 'linux' }],
    resources: [
      { resource: { 'directory-unix': { path: site } } },
      { id: 'value', resource: { 'file-unix': { path: `${site}/value`, content: contentOf(value) } } },
      { resource: { 'file-unix': secret } },
      { id: 'ran', resource: { script: { program: 'sh', apply: `echo ${value} >>'${witness}/ran'` } } },
      {
        id: 'triggered',
        resource: {
          script: { program: 'sh', apply: `head -n 1 '${site}/value' >>'${witness}/triggered'`, rerun_on: ['value'] },
        },
      },
    ],
  });
}

/** The module of both agents: a script that runs once for each value. */
export const sharedModule = (fleet: Fleet, value: string): string =>
  JSON.stringify({
    name: SHARED,
    supports: [{ platform: 'linux' }],
    resources: [
      {
        id: 'shared',
        resource: {
          script: { program: 'sh', apply: `echo ${value} >>'${fleet.path('witness')}/\${{ agent.name }}/shared'` },
        },
      },
    ],
  });

export class Load {
  private readonly fleet: Fleet;
  private readonly ledger: Ledger;
  private readonly ask: Ask;
  private isStopped = false;
  private readonly loops: Promise<void>[] = [];

  constructor(fleet: Fleet, ledger: Ledger) {
    this.fleet = fleet;
    this.ledger = ledger;
    this.ask = askOf(fleet, ledger);
  }

  begin(): void {
    const writes = [this.secret, this.tag, this.channel, this.secret];
    this.loop(async (round) => writes[round % writes.length]?.call(this));
    for (const agent of AGENTS) {
      this.loop(() => this.apply(agent));
      this.loop(() => this.exec(agent));
    }
    this.loop(() => this.rollout());
    const enforced = new EnforcedLoad(this.fleet, this.ledger, this.ask);
    this.loop((round) => enforced.step(round));
  }

  /** Waits until what was begun has ended. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all(this.loops);
  }

  private loop(step: (round: number) => Promise<void>): void {
    const run = async () => {
      for (let round = 0; !this.isStopped; round += 1) {
        await step(round);
        await sleep(100);
      }
    };
    this.loops.push(run());
  }

  private async secret(): Promise<void> {
    const name = this.ledger.fresh('secret').replace('-', '_');
    this.ledger.secrets.set(name, 'unknown');
    const { fate } = await this.ask('createSecret', { body: { name, value: 'a value' } });
    this.ledger.secrets.set(name, fate);
  }

  private async channel(): Promise<void> {
    if (this.ledger.channels.size > 20) return;
    const name = this.ledger.fresh('channel');
    this.ledger.channels.set(name, 'unknown');
    const config = { url: 'https://hooks.example.com/x' };
    const { fate } = await this.ask('createChannel', {
      body: { name, channel_type: 'webhook', config, enabled: false },
    });
    this.ledger.channels.set(name, fate);
  }

  private async tag(): Promise<void> {
    const kept = this.ledger.tags.get('a1') ?? { acknowledged: 0, attempted: 0 };
    this.ledger.tags.set('a1', kept);
    kept.attempted += 1;
    const params = { node_id: this.fleet.nodes.a1, key: 'turn' };
    const { fate } = await this.ask('setTag', { params, body: { value: String(kept.attempted) } });
    if (fate === 'acknowledged') kept.acknowledged = kept.attempted;
  }

  private async rollout(): Promise<void> {
    const value = this.ledger.fresh('shared');
    this.ledger.noteShared(value);
    const uploaded = await this.ask('uploadModule', {
      body: { name: SHARED, content: sharedModule(this.fleet, value) },
    });
    if (uploaded.fate !== 'acknowledged') return;
    this.ledger.noteStored(value);
    const call = { params: { name: SHARED }, body: { wait: false, canary: 1 } };
    const { fate, answer } = await this.ask('applyAssignment', call);
    const id = fate === 'acknowledged' ? answer?.json.rollout_id : null;
    this.ledger.rollouts.push({ value, fate, id });
    if (id === null) await sleep(1_000);
    else await this.rolloutOver(id);
  }

  /** An agent gets the modules of the moment when its turn comes, so the next value must not be stored before. */
  private async rolloutOver(rollout_id: string): Promise<void> {
    while (!this.isStopped) {
      const { fate, answer } = await this.ask('getRollout', { params: { rollout_id } });
      const isOpen = ['running', 'paused', 'reverting'].includes(answer?.json?.state);
      // A store that was put back may not know it.
      if (answer !== null && fate !== 'unknown' && !isOpen) return;
      await sleep(200);
    }
  }

  private async apply(agent: AgentName): Promise<void> {
    const value = this.ledger.fresh(agent);
    const name = `load-${agent}`;
    const uploaded = await this.ask('uploadModule', { body: { name, content: moduleOf(this.fleet, agent, value) } });
    if (uploaded.fate !== 'acknowledged') return;
    const asked = await this.ask('applyAgent', {
      params: { node_id: this.fleet.nodes[agent] },
      // Every third apply is undone unless its agent comes back.
      body: { modules: [name], wait: false, ...(this.ledger.applies.length % 3 === 2 ? { confirm_secs: 30 } : {}) },
    });
    const id = asked.fate === 'acknowledged' ? asked.answer?.json.operation_id : null;
    this.ledger.applies.push({ agent, value, fate: asked.fate, id });
    // The next one is refused while this one runs; that is a part of the load too.
    await sleep(300);
  }

  private async exec(agent: AgentName): Promise<void> {
    const marker = this.ledger.fresh(`exec-${agent}`);
    const text = `echo ${marker} >>'${this.fleet.witness(agent)}/commands'; i=0; while [ $i -lt ${EXEC_LINES} ]; do echo ${marker} $i; i=$((i+1)); [ $i = 10 ] && sleep 1; done; true`;
    const { era } = this.ledger;
    const ended = await this.fleet.cli(['exec', agent, '--', 'sh', '-c', text]);
    if (ended.status === null) {
      this.ledger.violations.push(`the command ${marker} does not end: ${ended.stdout.slice(-200)} ${ended.stderr}`);
    }
    if (era === this.ledger.era) this.ledger.execs.push({ agent, marker, ended });
  }
}
