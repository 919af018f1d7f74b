/** Facts of a forward, and its audit events. */
import { FORWARD_KINDS, type ForwardKind, type SessionTarget, targetText } from '../../src/kernel/forward-target.js';
import type { NodeId } from '../../src/kernel/ids.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { printable } from '../../src/terminal/channel.js';
import type { CopiedNote } from '../../src/terminal/notes.js';
import { type AuditRow, metadataOf } from '../core/audit-store.js';
import { type DomainEvent, eventOfRequest, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import type { Transfer } from './channel-relay.js';

export interface ForwardFacts {
  readonly id: string;
  readonly nodeId: NodeId;
  readonly nodeName: string | null;
  readonly operatorId: string;
  readonly operator: string;
  readonly kind: ForwardKind;
  readonly targets: readonly SessionTarget[];
}

/** Why a forward has ended, as it completes "the forward ended: …". */
export const FORWARD_ENDS = {
  closed: 'its client closed it',
  client_lost: 'the connection to its client was lost',
  agent_lost: 'the connection to the agent was lost, or the agent ended it',
  stalled: 'its client or the agent read nothing for five minutes although data waited',
  not_attached: 'the agent or the client did not attach in time',
  operator_removed: 'its operator was removed, or lost the right to it',
  agent_rejected: 'its agent was rejected',
  orchestrator_stopped: 'the orchestrator stopped',
  orchestrator_lost: 'the orchestrator ended without a stop',
  failed: 'it could not be opened',
} as const;
export type ForwardEnd = keyof typeof FORWARD_ENDS;

const agentParty = ({ nodeId, nodeName }: Pick<ForwardFacts, 'nodeId' | 'nodeName'>): Party => ({
  id: nodeId,
  name: nodeName ?? nodeId,
  type: 'agent',
});

const NOUNS: Readonly<Record<ForwardKind, string>> = {
  forward: 'a forward',
  'ssh-proxy': 'an SSH connection',
  copy: 'a copy',
};

const eventOf = <E extends 'opened' | 'closed' | 'refused'>(kind: ForwardKind, event: E) =>
  kind === 'copy' ? (`copy.${event}` as const) : (`forward.${event}` as const);

const labelOf = ({ nodeName, nodeId }: Pick<ForwardFacts, 'nodeId' | 'nodeName'>): string => nodeName ?? nodeId;

/** Returns where a session leads, such as `through web-01 to localhost:80` or `from web-01 of /srv/site`. */
function wayOf(facts: Pick<ForwardFacts, 'nodeId' | 'nodeName' | 'targets'>): string {
  const [first] = facts.targets;
  const list = facts.targets.map(targetText).join(', ');
  if (first === undefined || !('copy' in first)) return `through ${labelOf(facts)} to ${list}`;
  return first.copy === 'read' ? `from ${labelOf(facts)} of ${list}` : `to ${labelOf(facts)} at ${list}`;
}

/** Members of the metadata that tell copies: `direction`. */
const directionOf = ([first]: readonly SessionTarget[]): JsonObject =>
  first !== undefined && 'copy' in first ? { direction: first.copy } : {};

export const openedEvent = (facts: ForwardFacts, context: RequestContext): DomainEvent =>
  eventOfRequest(context, {
    type: eventOf(facts.kind, 'opened'),
    target: agentParty(facts),
    summary: `${facts.operator} opened ${NOUNS[facts.kind]} ${wayOf(facts)}`,
    metadata: factsWith(facts, { address: context.address }),
  });

const some = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/**
 * Returns the end of a session that the orchestrator did not live to see. What it moved is unknown.
 * @param opened the event of its beginning, from the audit log
 */
export function lostEvent(opened: AuditRow): DomainEvent {
  const { address: _, ...facts } = metadataOf(opened);
  const kind = FORWARD_KINDS.find((one) => one === facts.kind) ?? 'forward';
  const what = NOUNS[kind].replace(/^an? /, 'The ');
  const { actor_name: operator, target_id: id, target_name: name } = opened;
  return {
    type: eventOf(kind, 'closed'),
    actor: SYSTEM,
    target: { id, name, type: 'agent' },
    summary: `${what} by ${operator} through ${name} ended (${FORWARD_ENDS.orchestrator_lost})`,
    metadata: { ...facts, reason: 'orchestrator_lost' },
  };
}

/** @param transfers connections and bytes by target, in the order of the targets */
export function closedEvent(
  facts: ForwardFacts,
  ended: {
    readonly by: ForwardEnd;
    readonly seconds: number;
    readonly transfers: readonly Transfer[];
    readonly copied: CopiedNote | null;
  },
): DomainEvent {
  const { by, seconds, transfers, copied } = ended;
  const sum = (key: keyof Transfer) => transfers.reduce((total, one) => total + one[key], 0);
  const [connections, sent, received] = [sum('connections'), sum('sent'), sum('received')];
  const isOwn = by === 'closed' || by === 'client_lost';
  const actor: Party = isOwn ? { id: facts.operatorId, name: facts.operator, type: 'operator' } : SYSTEM;
  const what = NOUNS[facts.kind].replace(/^an? /, 'The ');
  const moved = `${some(connections, 'connection')}, ${some(sent, 'byte')} sent, ${some(received, 'byte')} received`;
  const { files = 0, bytes = 0, failed = 0, sha256 = null } = copied ?? {};
  // Text of the agent, which may act on a terminal.
  const refusals = (copied?.refusals ?? []).map(printable);
  const hash = sha256 === null ? '' : `, SHA-256 ${sha256}`;
  const why = refusals[0] === undefined ? '' : ` (${refusals[0]})`;
  const copiedText = `${some(files, 'file')}, ${some(bytes, 'byte')}, ${failed} failed${why}${hash}`;
  return {
    type: eventOf(facts.kind, 'closed'),
    actor,
    target: agentParty(facts),
    summary:
      `${what} by ${facts.operator} ${wayOf(facts)} ended after ${seconds} s ` +
      `(${FORWARD_ENDS[by]}): ${facts.kind === 'copy' ? copiedText : moved}`,
    metadata: factsWith(facts, {
      reason: by,
      duration_secs: seconds,
      ...(facts.kind === 'copy' ? { files, bytes, failed, sha256, refusals } : {}),
      connections,
      bytes_sent: sent,
      bytes_received: received,
      transfers: transfers.map((one, index) => ({
        target: targetText(facts.targets[index] as SessionTarget),
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
    type: eventOf(facts.kind, 'refused'),
    target: agentParty(facts),
    summary: `${NOUNS[facts.kind]} ${wayOf(facts)} was refused: ${reason}`.replace(/^a/, 'A'),
    metadata: {
      kind: facts.kind,
      ...directionOf(facts.targets),
      node_id: facts.nodeId,
      targets: facts.targets.map(targetText),
      reason,
      address: context.address,
    },
  });

const factsWith = (facts: ForwardFacts, more: JsonObject): JsonObject => ({
  session_id: facts.id,
  node_id: facts.nodeId,
  kind: facts.kind,
  ...directionOf(facts.targets),
  targets: facts.targets.map(targetText),
  ...more,
});
