/** The requests to a fleet, acknowledged and refused. */
import type { Finished } from '../support/orch.js';
import type { AgentName } from './machines.js';

/** How a write was answered; `unknown` when the connection broke before the answer. */
export type Fate = 'acknowledged' | 'refused' | 'unknown';

export interface Apply {
  readonly agent: AgentName;
  /** Content of the managed file, and the name that the scripts write down. */
  readonly value: string;
  readonly fate: Fate;
  readonly id: string | null;
}

/** A rollout of the module that both agents share. */
export interface RolloutAsked {
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
  readonly rollouts: RolloutAsked[] = [];
  readonly execs: Exec[] = [];
  /** Values of the enforced module, in the order in which they were published. */
  readonly kept: { readonly value: string; readonly fate: Fate }[] = [];
  /** Values of the module that rollouts apply: the last two that are known to be stored, and those that may be stored since. */
  private shared: readonly string[] = [];
  private lastStored = '';
  /** Values that were current when a store was restored, or a journal lost: the machines are brought to them once more. */
  readonly mayRunAgain = new Set<string>();
  /** Operations whose results were compared with what ran. */
  readonly compared = new Set<string>();
  /** Promises that were broken, one sentence each. */
  readonly violations: string[] = [];
  /** Text of the newest checkpoint of the audit log, as an operator keeps it elsewhere. */
  checkpoint: string | null = null;
  /** Rises when something acknowledged is forgotten: what began before counts for nothing, however late it ends. */
  era = 0;
  private count = 0;

  /** Notes a value of the module that rollouts apply, before its upload. */
  noteShared(value: string): void {
    this.shared = [...this.shared, value];
  }

  /** Notes that the upload of the value was acknowledged. The rollout of the one before it may be under way. */
  noteStored(value: string): void {
    this.shared = this.shared.slice(Math.max(0, this.shared.indexOf(this.lastStored)));
    this.lastStored = value;
  }

  /** Lets the script of the current rollout run twice, and of those whose upload may be under way. */
  allowSecondRuns(): void {
    for (const value of this.shared) this.mayRunAgain.add(value);
  }

  /** Returns a function that forgets what was acknowledged from now on, for a store that is restored to this moment. */
  mark(): () => void {
    const secrets = new Map(this.secrets);
    const channels = new Map(this.channels);
    const tags = this.tags.get('a1')?.acknowledged ?? 0;
    const applies = new Set(this.applies);
    const rollouts = new Set(this.rollouts);
    const { shared } = this;
    return () => {
      for (const value of shared) this.mayRunAgain.add(value);
      this.era += 1;
      this.checkpoint = null;
      for (const name of this.secrets.keys()) this.secrets.set(name, secrets.get(name) ?? 'unknown');
      for (const name of this.channels.keys()) this.channels.set(name, channels.get(name) ?? 'unknown');
      const kept = this.tags.get('a1');
      if (kept !== undefined) kept.acknowledged = tags;
      this.applies.forEach((apply, index) => {
        if (!applies.has(apply)) this.applies[index] = { ...apply, fate: 'unknown', id: null };
      });
      this.rollouts.forEach((rollout, index) => {
        if (!rollouts.has(rollout)) this.rollouts[index] = { ...rollout, fate: 'unknown', id: null };
      });
      this.execs.length = 0;
      this.kept.length = 0;
    };
  }

  /** A name that was not used before. */
  fresh(prefix: string): string {
    this.count += 1;
    return `${prefix}-${this.count}`;
  }
}
