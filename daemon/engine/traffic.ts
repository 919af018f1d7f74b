/** Hands what agents say about runs to whoever has to do with the run. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { AgentTraffic, EngineMessage } from '../fleet/connection-registry.js';
import type { AgentSessions } from './agent-sessions.js';
import type { Lanes } from './lanes.js';
import type { Observations } from './observations.js';
import type { OperationDriver } from './operation-driver.js';
import type { OperationReports } from './operation-reports.js';

export interface TrafficOptions {
  readonly sessions: AgentSessions;
  readonly lanes: Lanes;
  readonly observations: Observations;
  readonly driver: OperationDriver;
  readonly reports: OperationReports;
}

export class Traffic implements AgentTraffic {
  private readonly options: TrafficOptions;

  constructor(options: TrafficOptions) {
    this.options = options;
  }

  async receive(nodeId: NodeId, message: EngineMessage): Promise<void> {
    const { sessions, lanes, observations, reports } = this.options;
    if (message.type === 'inventory') {
      const session = sessions.told(nodeId);
      await lanes.enter(nodeId, () => reports.reconcile(nodeId, message, session));
    } else if (!observations.receive(nodeId, message)) {
      await lanes.enter(nodeId, () => reports.receive(nodeId, message));
    }
  }

  disconnected(nodeId: NodeId): void {
    this.options.observations.disconnected(nodeId);
    this.options.driver.disconnected(nodeId);
  }

  async revoked(nodeId: NodeId): Promise<void> {
    this.disconnected(nodeId);
    await this.options.lanes.enter(nodeId, () => this.options.driver.revoked(nodeId));
  }
}
