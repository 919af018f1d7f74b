import type { NodeId } from '../../../src/kernel/ids.js';
import type { AgentTraffic, EngineMessage } from '../../fleet/connection-registry.js';
import { throughOutages } from '../../fleet/through-outages.js';
import type { Lanes } from '../lanes.js';
import type { OperationDriver } from '../operations/operation-driver.js';
import type { OperationReports } from '../operations/operation-reports.js';
import type { AgentSessions } from './agent-sessions.js';
import type { Observations } from './observations.js';

interface TrafficOptions {
  readonly sessions: AgentSessions;
  readonly lanes: Lanes;
  readonly observations: Observations;
  readonly driver: OperationDriver;
  readonly reports: OperationReports;
  /** Called when an agent is connected and has reported what it did. */
  readonly onReady: (nodeId: NodeId) => void;
  /** Called when an agent was rejected or removed. */
  readonly onRevoked: (nodeId: NodeId) => void;
}

export class Traffic implements AgentTraffic {
  private readonly options: TrafficOptions;

  constructor(options: TrafficOptions) {
    this.options = options;
  }

  async receive(nodeId: NodeId, message: EngineMessage): Promise<void> {
    const { sessions, observations, reports, onReady } = this.options;
    if (message.type === 'inventory') {
      const session = sessions.recordInventory(nodeId, message.features ?? []);
      await this.lasting(nodeId, () => reports.reconcile(nodeId, message, session));
      if (sessions.isReady(nodeId)) onReady(nodeId);
    } else if (!observations.receive(nodeId, message)) {
      await this.lasting(nodeId, () => reports.receive(nodeId, message));
    }
  }

  /** Works in the lane of the agent; again while the store is away, as long as the same connection lasts. */
  private lasting(nodeId: NodeId, work: () => Promise<void>): Promise<void> {
    const { sessions, lanes } = this.options;
    const isSame = sessions.watch(nodeId);
    return throughOutages(
      () => lanes.enter(nodeId, work),
      () => !isSame(),
    );
  }

  disconnected(nodeId: NodeId): void {
    this.options.observations.disconnected(nodeId);
    this.options.driver.disconnected(nodeId);
  }

  async revoked(nodeId: NodeId): Promise<void> {
    this.disconnected(nodeId);
    await this.options.lanes.enter(nodeId, () => this.options.driver.revoked(nodeId));
    this.options.onRevoked(nodeId);
  }
}
