/** The audit events of terminal sessions: each is about the agent, and names the session in its metadata. */
import type { JsonObject } from '../../src/kernel/json.js';
import { type Exit, endedStatus } from '../../src/terminal/exit.js';
import { type DomainEvent, type Party, type RequestContext, SYSTEM } from '../core/domain-event.js';
import { nodeLabel, type SessionFacts } from './session/session-facts.js';

const agentParty = ({ nodeId, nodeName }: SessionFacts): Party => ({
  id: nodeId,
  name: nodeName ?? nodeId,
  type: 'agent',
});

const metadataOf = (facts: SessionFacts, more: JsonObject): JsonObject => ({
  session_id: facts.id,
  node_id: facts.nodeId,
  kind: facts.kind,
  ...(facts.command === null ? {} : { command: [...facts.command] }),
  ...more,
});

const requested = ({ requestId }: RequestContext): JsonObject => ({ request_id: requestId });

/** Of a terminal or a command, in words. */
const noun = ({ kind }: SessionFacts): string => (kind === 'shell' ? 'a terminal' : 'a command');

export function openedEvent(facts: SessionFacts, more: JsonObject, context: RequestContext): DomainEvent {
  const summary = `${facts.operator} ${facts.kind === 'shell' ? 'opened' : 'started'} ${noun(facts)} on ${nodeLabel(facts)}`;
  const metadata = metadataOf(facts, { ...more, ...requested(context) });
  return { type: 'terminal.opened', actor: context.actor, target: agentParty(facts), summary, metadata };
}

export interface EndDetails {
  readonly exit: Exit;
  readonly bytes: number;
  readonly recording: string;
  readonly transcriptSha256: string | null;
  /** Who ended it; null for its program, its agent or the orchestrator. */
  readonly by: RequestContext | null;
}

export function endedEvent(facts: SessionFacts, details: EndDetails): DomainEvent {
  const { exit, bytes, recording, transcriptSha256, by } = details;
  const type = endedStatus(exit.reason) === 'closed' ? 'terminal.closed' : 'terminal.interrupted';
  const verb = type === 'terminal.closed' ? 'ended' : 'was interrupted';
  const summary = `${facts.kind === 'shell' ? 'the terminal' : 'the command'} of ${facts.operator} on ${nodeLabel(facts)} ${verb}: ${exit.reason}`;
  const metadata = metadataOf(facts, {
    reason: exit.reason,
    exit_code: exit.code,
    exit_signal: exit.signal,
    output_bytes: bytes,
    recording,
    transcript_sha256: transcriptSha256,
    ...(by === null ? {} : requested(by)),
  });
  return { type, actor: by?.actor ?? SYSTEM, target: agentParty(facts), summary, metadata };
}

export interface FoundDetails {
  /** Of the recording, relative to the data directory. */
  readonly file: string;
  /** Of the plain file as it was found; null when it is damaged. */
  readonly sha256: string | null;
  readonly bytes: number;
}

/** Of a session that the store did not know, and whose recording was there. */
export function foundEvent(facts: SessionFacts, { file, sha256, bytes }: FoundDetails): DomainEvent {
  const summary = `found the recording of ${noun(facts)} of ${facts.operator} on ${nodeLabel(facts)}, which the store did not know`;
  const metadata = metadataOf(facts, { file, transcript_sha256: sha256, output_bytes: bytes });
  return { type: 'terminal.transcript_found', actor: SYSTEM, target: agentParty(facts), summary, metadata };
}

export interface AttachDetails {
  readonly mode: string;
  /** From whom the pen was taken. */
  readonly takenFrom: string | null;
  /** The operator watched before, and took a pen that was free. */
  readonly isUpgrade: boolean;
  readonly by: Party;
  readonly address: string | null;
}

export function attachedEvent(
  facts: SessionFacts,
  { mode, takenFrom, isUpgrade, by, address }: AttachDetails,
): DomainEvent {
  const place = `${noun(facts)} of ${facts.operator} on ${nodeLabel(facts)}`;
  const metadata = metadataOf(facts, { mode, address });
  const common = { actor: by, target: agentParty(facts) };
  if (takenFrom === null) {
    const attached = `${by.name} attached to ${place} to ${mode === 'write' ? 'write' : 'watch'}`;
    const summary = isUpgrade ? `${by.name} took the free pen of ${place}` : attached;
    return { ...common, type: 'terminal.attached', summary, metadata };
  }
  const summary = `${by.name} took ${place} from ${takenFrom}`;
  return { ...common, type: 'terminal.taken_over', summary, metadata: { ...metadata, taken_from: takenFrom } };
}

export interface Refusal {
  /** Why, as a word for programs. */
  readonly reason: string;
  readonly by: Party;
  readonly address: string | null;
  readonly requestId?: string;
}

/** @param facts what it was about; null when that is not known */
export function refusedEvent(
  facts: Pick<SessionFacts, 'nodeId' | 'nodeName'> &
    Partial<Pick<SessionFacts, 'command'>> & { readonly id: string | null },
  { reason, by, address, requestId }: Refusal,
): DomainEvent {
  const summary = `${by.name === '' ? by.id : by.name} was refused a terminal on ${nodeLabel(facts)}: ${reason}`;
  const target: Party = { id: facts.nodeId, name: facts.nodeName ?? '', type: 'agent' };
  const { command = null } = facts;
  const wanted: JsonObject = command === null ? {} : { command: [...command] };
  const metadata: JsonObject = { session_id: facts.id, node_id: facts.nodeId, ...wanted, reason, address };
  return {
    type: 'terminal.refused',
    actor: by,
    target,
    summary,
    metadata: requestId === undefined ? metadata : { ...metadata, request_id: requestId },
  };
}
