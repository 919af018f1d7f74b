/** Work that goes on while faults happen, and a ledger of what was asked, acknowledged and refused. */
import type { Answer } from '../api/api-request.js';
import type { Call } from '../api/world.js';
import type { Finished } from '../support/orch.js';
import { AGENTS, type AgentName, type Fleet } from './fleet.js';

/** How a write was answered; `unknown` when the connection broke before the answer. */
export type Fate = 'acknowledged' | 'refused' | 'unknown';

export interface Apply {
  readonly agent: AgentName;
  /** Content of the managed file, and the name that the scripts write down. */
  readonly value: string;
  readonly fate: Fate;
  readonly id: string | null;
}

export interface Exec {
  readonly agent: AgentName;
  readonly marker: string;
  readonly ended: Finished;
}

export class Ledger {
  readonly secrets = new Map<string, Fate>();
  readonly channels = new Map<string, Fate>();
  readonly tags = new Map<string, { acknowledged: number; attempted: number }>();
  readonly applies: Apply[] = [];
  readonly execs: Exec[] = [];
  /** Promises that were broken, one sentence each. */
  readonly violations: string[] = [];
  /** Text of the newest checkpoint of the audit log, as an operator keeps it elsewhere. */
  checkpoint: string | null = null;
  /** Rises when something acknowledged is forgotten: what began before counts for nothing, however late it ends. */
  era = 0;
  private count = 0;

  /** Returns a function that forgets what was acknowledged from now on, for a store that is put back to this moment. */
  mark(): () => void {
    const secrets = new Map(this.secrets);
    const channels = new Map(this.channels);
    const tags = this.tags.get('a1')?.acknowledged ?? 0;
    const applies = new Set(this.applies);
    return () => {
      this.era += 1;
      this.checkpoint = null;
      for (const name of this.secrets.keys()) this.secrets.set(name, secrets.get(name) ?? 'unknown');
      for (const name of this.channels.keys()) this.channels.set(name, channels.get(name) ?? 'unknown');
      const kept = this.tags.get('a1');
      if (kept !== undefined) kept.acknowledged = tags;
      this.applies.forEach((apply, index) => {
        if (!applies.has(apply)) this.applies[index] = { ...apply, fate: 'unknown', id: null };
      });
      this.execs.length = 0;
    };
  }

  /** A name that was not used before. */
  fresh(prefix: string): string {
    this.count += 1;
    return `${prefix}-${this.count}`;
  }
}

/** Lines that an exec prints, half of them after a while. */
const EXEC_LINES = 20;

export const linesOf = (marker: string): string =>
  Array.from({ length: EXEC_LINES }, (_, line) => `${marker} ${line}\n`).join('');

/** The file's content: long enough to be torn, and telling by which apply it was written. */
export const contentOf = (value: string): string => `${value}\n`.repeat(500);

/**
 * The module of one agent: a file, a script that runs once for each value, and a script that the file's change triggers. Both
 * append to files outside of what faults reach.
 */
export function moduleOf(fleet: Fleet, agent: AgentName, value: string): string {
  const site = fleet.site(agent);
  const witness = fleet.witness(agent);
  return JSON.stringify({
    name: `load-${agent}`,
    supports: [{ platform: 'linux' }],
    resources: [
      { resource: { 'directory-unix': { path: site } } },
      { id: 'value', resource: { 'file-unix': { path: `${site}/value`, content: contentOf(value) } } },
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

export class Load {
  private readonly fleet: Fleet;
  private readonly ledger: Ledger;
  private isStopped = false;
  private readonly loops: Promise<void>[] = [];

  constructor(fleet: Fleet, ledger: Ledger) {
    this.fleet = fleet;
    this.ledger = ledger;
  }

  begin(): void {
    const writes = [this.secret, this.tag, this.channel, this.secret];
    this.loop(async (round) => writes[round % writes.length]?.call(this));
    for (const agent of AGENTS) {
      this.loop(() => this.apply(agent));
      this.loop(() => this.exec(agent));
    }
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
        await new Promise((resolve) => setTimeout(resolve, 50));
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

  private async apply(agent: AgentName): Promise<void> {
    const value = this.ledger.fresh(agent);
    const name = `load-${agent}`;
    const uploaded = await this.ask('uploadModule', { body: { name, content: moduleOf(this.fleet, agent, value) } });
    if (uploaded.fate !== 'acknowledged') return;
    const asked = await this.ask('applyAgent', {
      params: { node_id: this.fleet.nodes[agent] },
      body: { modules: [name], wait: false },
    });
    const id = asked.fate === 'acknowledged' ? asked.answer?.json.operation_id : null;
    this.ledger.applies.push({ agent, value, fate: asked.fate, id });
    // The next one is refused while this one runs; that is a part of the load too.
    await new Promise((resolve) => setTimeout(resolve, 150));
  }

  private async exec(agent: AgentName): Promise<void> {
    const marker = this.ledger.fresh(`exec-${agent}`);
    const text = `i=0; while [ $i -lt ${EXEC_LINES} ]; do echo ${marker} $i; i=$((i+1)); [ $i = 10 ] && sleep 1; done; true`;
    const { era } = this.ledger;
    const ended = await this.fleet.cli(['exec', agent, '--', 'sh', '-c', text]);
    if (era === this.ledger.era) this.ledger.execs.push({ agent, marker, ended });
  }

  /** Sends a request; an answer that breaks the API's own document is a violation. */
  private async ask(id: string, call: Call): Promise<{ readonly fate: Fate; readonly answer: Answer | null }> {
    const { era } = this.ledger;
    try {
      const answer = await this.fleet.world.call(id, call);
      if (era !== this.ledger.era) return { fate: 'unknown', answer };
      return { fate: answer.status < 300 ? 'acknowledged' : 'refused', answer };
    } catch (error) {
      if (String(error).includes('broke the document')) this.ledger.violations.push(String(error));
      // The programs that are killed are away for a moment.
      await new Promise((resolve) => setTimeout(resolve, 100));
      return { fate: 'unknown', answer: null };
    }
  }
}
