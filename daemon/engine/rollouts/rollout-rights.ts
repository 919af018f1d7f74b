/** What an operator's grants permit of rollouts: each agent counts, because a rollout is one record. */
import type { Right } from '../../../src/contract/rights.js';
import { notGranted, type Rights } from '../../core/rights.js';
import type { Machines, Readable } from '../../fleet/machines.js';
import type { PlanLimits } from '../applies/plan-limits.js';
import type { SentModule } from '../modules/current-modules.js';
import type { GivenOneOff } from '../values/one-off-store.js';
import { rolloutNotFound } from './rollout-store.js';

interface RolloutRightsOptions {
  readonly machines: Machines;
  readonly planLimits: PlanLimits;
}

interface Member {
  readonly node_id: string;
  readonly name: string | null;
}

interface FoundRollouts {
  find(id: string): Promise<{ readonly agents: { readonly all: readonly { readonly row: Member }[] } }>;
}

/** A request for a rollout or for plans, as far as it stays open. */
export interface OpenRequest {
  /** Receives the check that throws `not_granted` once the operator does not hold the right on every agent any longer. */
  readonly onAdmitted?: (stillAdmitted: (rights: Rights) => Promise<void>) => void;
}

interface Requested extends OpenRequest {
  readonly right: Right;
  readonly rights: Rights;
  readonly modules: readonly string[];
  readonly sent: readonly SentModule[];
  readonly oneOff?: GivenOneOff | null;
}

export class RolloutRights {
  private readonly options: RolloutRightsOptions;

  constructor(options: RolloutRightsOptions) {
    this.options = options;
  }

  /** Returns the node IDs that a request may choose from; null for all. */
  async readable(rights: Rights): Promise<ReadonlySet<string> | null> {
    if (!rights.isLimited) return null;
    return new Set((await this.options.machines.all(rights)).map(({ nodeId }) => nodeId));
  }

  /** Returns what the operator may read of the past; null for everything. */
  history(rights: Rights): Promise<Readable | null> {
    return this.options.machines.history(rights);
  }

  /** Throws `rollout_not_found` unless the operator may read every agent of the rollout, and `not_granted` without the right there. */
  async requireOf(rollouts: FoundRollouts, id: string, right: Right, rights: Rights): Promise<void> {
    if (!rights.isLimited) return;
    const members = (await rollouts.find(id)).agents.all.map(({ row }) => row);
    for (const { node_id } of members) {
      if (!(await this.options.machines.mayRead(rights, node_id, id))) throw rolloutNotFound(id);
    }
    await this.require(right, rights, members);
  }

  /**
   * Throws `not_granted` for an agent on which the operator does not hold the right, or to which they may not apply when more than
   * what is assigned is planned.
   */
  async admit(requested: Requested, members: readonly Member[]): Promise<void> {
    const { right, rights, modules, sent, oneOff = null, onAdmitted } = requested;
    await this.require(right, rights, members);
    onAdmitted?.((now) => this.requireStill(right, now, members));
    const planned = { modules, bringsContent: sent.length > 0 || oneOff !== null };
    for (const { node_id } of members) await this.options.planLimits.check(node_id, planned, rights);
  }

  /** Throws as `require` for agents that are there, after one read for all. */
  private async requireStill(right: Right, rights: Rights, members: readonly Member[]): Promise<void> {
    if (!rights.isLimited) return;
    const held = new Set((await this.options.machines.all(rights, right)).map(({ nodeId }) => nodeId));
    for (const { node_id, name } of members) {
      if (held.has(node_id)) continue;
      // The rollout tells of a removed agent itself.
      if ((await this.options.machines.find(node_id)) !== null) throw notGranted(right, name ?? node_id);
    }
  }

  private async require(right: Right, rights: Rights, members: readonly Member[]): Promise<void> {
    if (!rights.isLimited) return;
    for (const { node_id, name } of members) {
      const machine = await this.options.machines.find(node_id);
      if (machine === null || !rights.may(right, machine)) throw notGranted(right, name ?? node_id);
    }
  }
}
