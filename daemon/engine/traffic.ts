/** Hands what agents say about runs to whoever has to do with the run. */

import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { AgentTraffic, EngineMessage } from '../fleet/connection-registry.js';
import type { Lanes } from './lanes.js';
import type { Observations } from './observations.js';
import type { OperationDriver } from './operations/operation-driver.js';
import type { OperationReports } from './operations/operation-reports.js';

interface TrafficOptions {
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

/** Stands for a connection on which the inventory was told; another one of the same agent is another object. */
export interface Session {
  /** The inventory is reconciled. */
  isReady: boolean;
}

export class AgentSessions {
  private readonly sessions = new Map<NodeId, Session>();
  private readonly acknowledged = new Map<NodeId, Set<string>>();

  /** The agent tells its inventory. Throws `protocol_violation` when it has done so on this connection. */
  told(nodeId: NodeId): Session {
    if (this.sessions.has(nodeId)) throw new Fault('protocol_violation', 'the agent told its inventory a second time');
    const session = { isReady: false };
    this.sessions.set(nodeId, session);
    return session;
  }

  isCurrent(nodeId: NodeId, session: Session): boolean {
    return this.sessions.get(nodeId) === session;
  }

  isReady(nodeId: NodeId): boolean {
    return this.sessions.get(nodeId)?.isReady === true;
  }

  /** A run was acknowledged: an inventory that the agent made before it heard of that may still name it. */
  forgets(nodeId: NodeId, runId: string): void {
    if (this.isReady(nodeId)) return;
    const runs = this.acknowledged.get(nodeId) ?? new Set();
    this.acknowledged.set(nodeId, runs.add(runId));
  }

  /** Whether the agent forgets a run that the inventory of this connection names. */
  hasForgotten(nodeId: NodeId, runId: string): boolean {
    return this.acknowledged.get(nodeId)?.has(runId) === true;
  }

  /** The inventory of a connection is reconciled; means nothing when that is gone. */
  inventoried(nodeId: NodeId, session: Session): void {
    if (!this.isCurrent(nodeId, session)) return;
    session.isReady = true;
    this.acknowledged.delete(nodeId);
  }

  closed(nodeId: NodeId): void {
    this.sessions.delete(nodeId);
    this.acknowledged.delete(nodeId);
  }
}
