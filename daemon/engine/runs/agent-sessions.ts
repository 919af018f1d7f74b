/** The connections of agents, as the engine sees them. */
import { Fault } from '../../../src/kernel/fault.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import { type AgentFeature, FEATURE_PURPOSES } from '../../../src/wire/features.js';
import { agentLabel, type KnownAgent } from './agent-gate.js';

export class AgentSessions {
  private readonly sessions = new Map<NodeId, Session>();
  private readonly acknowledged = new Map<NodeId, Set<string>>();

  /** Records an inventory. Throws `protocol_violation` for a second one on the same connection. */
  recordInventory(nodeId: NodeId, features: readonly string[]): Session {
    if (this.sessions.has(nodeId)) throw new Fault('protocol_violation', 'the agent sent its inventory a second time');
    const session = { isReady: false, features: new Set(features) };
    this.sessions.set(nodeId, session);
    return session;
  }

  isCurrent(nodeId: NodeId, session: Session): boolean {
    return this.sessions.get(nodeId) === session;
  }

  /** Returns a function that tells whether the agent's connection is still the present one. */
  watch(nodeId: NodeId): () => boolean {
    const session = this.sessions.get(nodeId);
    return () => this.sessions.get(nodeId) === session;
  }

  isReady(nodeId: NodeId): boolean {
    return this.sessions.get(nodeId)?.isReady === true;
  }

  /** Returns whether the agent has announced the feature; null before the inventory of its connection. */
  can(nodeId: NodeId, feature: AgentFeature): boolean | null {
    return this.sessions.get(nodeId)?.features.has(feature) ?? null;
  }

  /**
   * Throws `agent_too_old` when the agent lacks the feature. Passes before the inventory; the driver checks again when it sends
   * the run.
   */
  require(agent: KnownAgent, feature: AgentFeature): void {
    this.requireOf(agent.nodeId, agentLabel(agent), feature);
  }

  /** Like `require`. @param label name or node ID of the agent */
  requireOf(nodeId: NodeId, label: string, feature: AgentFeature): void {
    if (this.can(nodeId, feature) !== false) return;
    throw new Fault('agent_too_old', `agent ${label} is too old to ${FEATURE_PURPOSES[feature]}`, {
      hint: `upgrade it first: orch agents upgrade ${label}`,
      data: { feature },
    });
  }

  /** Records an acknowledged run: an inventory made before the acknowledgement may still name it. */
  forgets(nodeId: NodeId, runId: string): void {
    if (this.isReady(nodeId)) return;
    const runs = this.acknowledged.get(nodeId) ?? new Set();
    this.acknowledged.set(nodeId, runs.add(runId));
  }

  /** Returns true for a run that this connection's inventory may name although it was acknowledged. */
  hasForgotten(nodeId: NodeId, runId: string): boolean {
    return this.acknowledged.get(nodeId)?.has(runId) === true;
  }

  /** Marks the connection as reconciled; does nothing if it is no longer current. */
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

/** A connection on which the agent has sent its inventory; a new connection has a new object. */
export interface Session {
  /** True once the inventory is reconciled. */
  isReady: boolean;
  readonly features: ReadonlySet<string>;
}
