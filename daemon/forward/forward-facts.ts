/** Facts of a forward, and its audit events. */
import { type ForwardKind, type ForwardTarget, targetText } from '../../src/kernel/forward-target.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { type DomainEvent, eventOfRequest, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import type { Transfer } from './channel-relay.js';

export interface ForwardFacts {
  readonly id: string;
  readonly nodeId: NodeId;
  readonly nodeName: string | null;
  readonly operatorId: string;
  readonly operator: string;
  readonly kind: ForwardKind;
  readonly targets: readonly ForwardTarget[];
}

/** Why a forward has ended, as it completes "the forward ended: …". */
export const FORWARD_ENDS = {
  closed: 'its client closed it',
  client_lost: 'the connection to its client was lost',
  agent_lost: 'the connection to the agent was lost, or the agent ended it',
  stalled: 'its client or the agent read nothing for five minutes although data waited',
  not_attached: 'the agent or the client did not attach in time',
  operator_removed: 'its operator was removed',
  agent_rejected: 'its agent was rejected',
  orchestrator_stopped: 'the orchestrator stopped',
  failed: 'it could not be opened',
} as const;
export type ForwardEnd = keyof typeof FORWARD_ENDS;

const agentParty = ({ nodeId, nodeName }: Pick<ForwardFacts, 'nodeId' | 'nodeName'>): Party => ({
  id: nodeId,
  name: nodeName ?? nodeId,
  type: 'agent',
});

const noun = (kind: ForwardKind): string => (kind === 'forward' ? 'a forward' : 'an SSH connection');

const labelOf = ({ nodeName, nodeId }: Pick<ForwardFacts, 'nodeId' | 'nodeName'>): string => nodeName ?? nodeId;

const list = (targets: readonly ForwardTarget[]): string => targets.map(targetText).join(', ');

export const openedEvent = (facts: ForwardFacts, context: RequestContext): DomainEvent =>
  eventOfRequest(context, {
    type: 'forward.opened',
    target: agentParty(facts),
    summary: `${facts.operator} opened ${noun(facts.kind)} through ${labelOf(facts)} to ${list(facts.targets)}`,
    metadata: metadataOf(facts, { address: context.address }),
  });

/** @param transfers connections and bytes by target, in the order of the targets */
export function closedEvent(
  facts: ForwardFacts,
  ended: { readonly by: ForwardEnd; readonly seconds: number; readonly transfers: readonly Transfer[] },
): DomainEvent {
  const { by, seconds, transfers } = ended;
  const sum = (key: keyof Transfer) => transfers.reduce((total, one) => total + one[key], 0);
  const [connections, sent, received] = [sum('connections'), sum('sent'), sum('received')];
  const isOwn = by === 'closed' || by === 'client_lost';
  const actor: Party = isOwn ? { id: facts.operatorId, name: facts.operator, type: 'operator' } : SYSTEM;
  const what = facts.kind === 'forward' ? 'The forward' : 'The SSH connection';
  return {
    type: 'forward.closed',
    actor,
    target: agentParty(facts),
    summary:
      `${what} of ${facts.operator} through ${labelOf(facts)} to ${list(facts.targets)} ended after ${seconds} s ` +
      `(${FORWARD_ENDS[by]}): ${connections} connections, ${sent} bytes sent, ${received} bytes received`,
    metadata: metadataOf(facts, {
      reason: by,
      duration_secs: seconds,
      connections,
      bytes_sent: sent,
      bytes_received: received,
      transfers: transfers.map((one, index) => ({
        target: targetText(facts.targets[index] as ForwardTarget),
        connections: one.connections,
        bytes_sent: one.sent,
        bytes_received: one.received,
      })),
    }),
  };
}

export const refusedEvent = (
  facts: Pick<ForwardFacts, 'kind' | 'nodeId' | 'nodeName' | 'targets'>,
  reason: string,
  context: RequestContext,
): DomainEvent =>
  eventOfRequest(context, {
    type: 'forward.refused',
    target: agentParty(facts),
    summary: `${noun(facts.kind)} through ${labelOf(facts)} to ${list(facts.targets)} was refused: ${reason}`.replace(
      /^a/,
      'A',
    ),
    metadata: {
      kind: facts.kind,
      node_id: facts.nodeId,
      targets: facts.targets.map(targetText),
      reason,
      address: context.address,
    },
  });

const metadataOf = (facts: ForwardFacts, more: JsonObject): JsonObject => ({
  session_id: facts.id,
  node_id: facts.nodeId,
  kind: facts.kind,
  targets: facts.targets.map(targetText),
  ...more,
});
