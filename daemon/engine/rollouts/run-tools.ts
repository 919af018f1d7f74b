/** The tools of the parts of a rollout in memory. */
import type { Core } from '../../core/core.js';
import type { Party } from '../../core/domain-event.js';
import type { AgentLink } from '../../fleet/connection-registry.js';
import type { Applies } from '../applies/applies.js';
import type { Verifications } from '../applies/verifications.js';
import type { Lanes, Places } from '../lanes.js';
import type { CurrentModules } from '../modules/current-modules.js';
import type { OperationReader } from '../operations/operation-reader.js';
import type { Leases } from '../runs/leases.js';

export type MayApply = (actor: Party, nodeId: string | null) => Promise<boolean>;

export interface RunTools extends Pick<Core, 'clock' | 'db' | 'logger' | 'uow'> {
  readonly link: AgentLink;
  readonly leases: Leases;
  readonly applies: Applies;
  readonly operations: OperationReader;
  /** Runs the health checks of what was applied last to an agent. */
  readonly verify: Verifications['verify'];
  /** Prepares the modules that a rollout carries as texts. */
  readonly revive: CurrentModules['revive'];
  /** Returns true while this party may apply to the machine, or, with null, to any. */
  readonly mayApply: MayApply;
  /** One lane per rollout: its commands and its steps do not overlap. */
  readonly lanes: Lanes;
  /** Limits how many applies of all rollouts are resolved and stored at a time. */
  readonly starting: Places;
  /** Aborted when the orchestrator stops. */
  readonly shutdown: AbortSignal;
  /** Monotonic milliseconds until which offline agents are expected back, because the orchestrator has just started. */
  readonly returnsBy: number;
}
