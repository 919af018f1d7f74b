/** The agents and assignments that automatic applies leave alone, because an operator's rollout over them has not ended. */
import type { Queryable } from '../../database/schema.js';
import { listUnfinishedRollouts, nodesOfRollout } from '../rollouts/rollout-store.js';

export interface Holds {
  /** Returns true while an unfinished rollout is about the agent or one of the assignments. */
  covers(nodeId: string, assignments: readonly string[]): boolean;
}

export class RolloutHolds {
  /** Agents of each unfinished rollout, which never change. */
  private agents = new Map<string, ReadonlySet<string>>();

  /**
   * Returns the holds of now. A rollout that was paused or halted holds as well: it is there to keep its change from other agents,
   * also from those that match its assignment since.
   */
  async current(db: Queryable): Promise<Holds> {
    const unfinished = await listUnfinishedRollouts(db);
    const agents = new Map<string, ReadonlySet<string>>();
    for (const { rollout_id: id } of unfinished) {
      agents.set(id, this.agents.get(id) ?? new Set(await nodesOfRollout(db, id)));
    }
    this.agents = agents;
    const names = new Set(unfinished.flatMap(({ assignment }) => assignment ?? []));
    return {
      covers: (nodeId, assignments) =>
        assignments.some((name) => names.has(name)) || [...agents.values()].some((nodes) => nodes.has(nodeId)),
    };
  }
}
