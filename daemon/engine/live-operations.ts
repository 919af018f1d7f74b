/** The applies that this process has to do with now. */
import type { NodeId } from '../../src/kernel/ids.js';
import type { LiveOperation } from './live-operation.js';

export class LiveOperations {
  private readonly byId = new Map<string, LiveOperation>();
  private readonly byNode = new Map<NodeId, Set<LiveOperation>>();

  get(operationId: string): LiveOperation | undefined {
    return this.byId.get(operationId);
  }

  all(): readonly LiveOperation[] {
    return [...this.byId.values()];
  }

  ofNode(nodeId: NodeId): readonly LiveOperation[] {
    return [...(this.byNode.get(nodeId) ?? [])];
  }

  /** One that counts as interrupted, but which the agent has not finished telling about; undefined when there is none. */
  late(nodeId: NodeId): LiveOperation | undefined {
    return this.ofNode(nodeId).find((operation) => !operation.isActive);
  }

  add(operation: LiveOperation): void {
    this.byId.set(operation.id, operation);
    const siblings = this.byNode.get(operation.nodeId) ?? new Set();
    this.byNode.set(operation.nodeId, siblings.add(operation));
  }

  remove(operation: LiveOperation): void {
    if (this.byId.get(operation.id) === operation) this.byId.delete(operation.id);
    const siblings = this.byNode.get(operation.nodeId);
    siblings?.delete(operation);
    if (siblings?.size === 0) this.byNode.delete(operation.nodeId);
  }
}
