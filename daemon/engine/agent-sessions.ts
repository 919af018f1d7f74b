/** Which agents have told their inventory on the connection that they have now: only those are sent an apply. */
import type { NodeId } from '../../src/kernel/ids.js';

/** Stands for one connection; another one of the same agent is another object. */
export interface Session {
  isReady: boolean;
}

export class AgentSessions {
  private readonly sessions = new Map<NodeId, Session>();

  /** The connection of this moment. */
  current(nodeId: NodeId): Session {
    const session = this.sessions.get(nodeId) ?? { isReady: false };
    this.sessions.set(nodeId, session);
    return session;
  }

  isCurrent(nodeId: NodeId, session: Session): boolean {
    return this.sessions.get(nodeId) === session;
  }

  isReady(nodeId: NodeId): boolean {
    return this.sessions.get(nodeId)?.isReady === true;
  }

  /** The inventory of a connection is reconciled; means nothing when that is gone. */
  inventoried(nodeId: NodeId, session: Session): void {
    if (this.isCurrent(nodeId, session)) session.isReady = true;
  }

  closed(nodeId: NodeId): void {
    this.sessions.delete(nodeId);
  }
}
