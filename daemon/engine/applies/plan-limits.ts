/**
 * Limits of plans without the right to apply: a plan runs check scripts and shows what files contain, so it takes stored modules
 * that an assignment gives the machine, and nothing that comes with the request.
 */
import { type Machine, notGranted, type Rights } from '../../core/rights.js';
import type { Queryable } from '../../database/schema.js';
import type { Machines } from '../../fleet/machines.js';
import type { CurrentAssignments } from '../assignments/assignment-store.js';
import { agentWithInputs } from '../runs/agent-gate.js';

interface Planned {
  /** Names of the modules that the request names. */
  readonly modules: readonly string[];
  /** True for a plan of modules or values that come with the request, or of an earlier desired state. */
  readonly bringsContent: boolean;
}

interface PlanLimitsOptions {
  readonly db: Queryable;
  readonly assignments: CurrentAssignments;
  readonly machines: Pick<Machines, 'find'>;
}

export class PlanLimits {
  private readonly options: PlanLimitsOptions;

  constructor(options: PlanLimitsOptions) {
    this.options = options;
  }

  /** Throws `not_granted` for a plan of more than what is assigned, without the right `apply` on the machine. */
  async check(nodeId: string, planned: Planned, rights: Rights): Promise<void> {
    if (rights.has('apply') && !rights.isLimited) return;
    const machine = await this.options.machines.find(nodeId);
    if (machine !== null && !rights.may('apply', machine)) await this.refuseUnassigned(machine, planned);
  }

  private async refuseUnassigned(machine: Machine, { modules, bringsContent }: Planned): Promise<void> {
    const { db, assignments } = this.options;
    if (bringsContent) throw tooMuch('content that comes with the request');
    if (modules.length === 0) return;
    const { inputs } = await agentWithInputs(db, machine.nodeId);
    const assigned = new Set((await assignments.matching(db, inputs)).flatMap((one) => one.modules));
    const other = modules.find((name) => !assigned.has(name));
    if (other !== undefined) throw tooMuch(`the module ${other}, which no assignment gives this machine`);
  }
}

const tooMuch = (what: string) => notGranted('apply', `this machine, and a plan of ${what} needs it`);
