/** Which agents have told their inventory on the connection that they have now: only those are sent an apply. */
import { Fault } from '../../src/kernel/fault.js';
import type { NodeId } from '../../src/kernel/ids.js';

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
