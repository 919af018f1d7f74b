/** How busy each agent's processors were while somebody watches. */
import type { FleetSnapshot } from './fleet-snapshot.js';

/** Measurements that are kept of each agent. */
const KEPT = 60;

export class ProcessorHistory {
  private readonly byNode = new Map<string, { at: number; readonly values: (number | null)[] }>();

  /** A measurement that is known already adds nothing. */
  add({ agents }: FleetSnapshot): void {
    for (const { agent, sample } of agents) {
      if (sample === null) continue;
      const known = this.byNode.get(agent.node_id) ?? { at: 0, values: [] };
      if (known.at === sample.collected_at) continue;
      known.at = sample.collected_at;
      known.values.push(sample.cpu_usage);
      if (known.values.length > KEPT) known.values.shift();
      this.byNode.set(agent.node_id, known);
    }
  }

  /** Percent, the newest last. */
  of(nodeId: string): readonly (number | null)[] {
    return this.byNode.get(nodeId)?.values ?? [];
  }
}
