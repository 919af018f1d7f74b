/** Domain events: the audit log records them, and the event bus publishes them. */

import type { SEVERITIES } from '../../src/contract/audit.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { Rights } from './rights.js';

const PARTY_TYPES = [
  'operator',
  'agent',
  'system',
  'module',
  'values',
  'assignment',
  'secret',
  'channel',
  'window',
  'session',
  'operation',
  'rollout',
  'audit',
  'enrolment',
] as const;

/** Actor or target of an event. */
export interface Party {
  readonly id: string;
  readonly name: string;
  readonly type: (typeof PARTY_TYPES)[number];
}

/** The orchestrator itself. */
export const SYSTEM: Party = { id: 'system', name: 'orchestrator', type: 'system' };

export interface DomainEvent {
  readonly type: EventType;
  readonly actor: Party;
  readonly target: Party;
  /** One sentence without secrets. */
  readonly summary: string;
  readonly metadata: JsonObject;
}

/** Severity of an audit event. */
export type Severity = (typeof SEVERITIES)[number];

export const EVENT_SEVERITY = {
  'operator.added': 'warning',
  'operator.removed': 'warning',
  'operator.rights_changed': 'warning',
  'operator.expiring': 'warning',
  'operator.expired': 'warning',
  'operator.login': 'info',
  'operator.login_failed': 'warning',
  'operator.logout': 'info',
  'agent.pending': 'notice',
  'agent.approved': 'notice',
  'agent.rejected': 'notice',
  'agent.kept': 'warning',
  'agent.renamed': 'notice',
  'agent.name_reused': 'notice',
  'agent.removed': 'notice',
  'agent.removals_held': 'warning',
  'agent.connected': 'info',
  'agent.disconnected': 'notice',
  'agent.returned': 'notice',
  'agent.tags_changed': 'info',
  'agent.attributes_changed': 'info',
  'agent.refused': 'warning',
  'agent.protocol_violation': 'warning',
  'agent.duplicate_identity': 'critical',
  'agent.journal_lost': 'warning',
  'agent.upgrade_requested': 'notice',
  'agent.upgraded': 'notice',
  'agent.upgrade_failed': 'warning',
  'enrolment.created': 'notice',
  'enrolment.used': 'notice',
  'enrolment.revoked': 'notice',
  'module.uploaded': 'info',
  'module.deleted': 'notice',
  'values.uploaded': 'notice',
  'values.deleted': 'notice',
  'assignment.created': 'notice',
  'assignment.updated': 'notice',
  'assignment.deleted': 'notice',
  'assignment.planned': 'info',
  'assignment.applied': 'notice',
  'assignment.rollout_cancelled': 'notice',
  'rollout.planned': 'info',
  'rollout.applied': 'notice',
  'rollout.cancelled': 'notice',
  'rollout.paused': 'notice',
  'rollout.resumed': 'notice',
  'rollout.retried': 'notice',
  'rollout.halted': 'warning',
  'rollout.succeeded': 'info',
  'rollout.failed': 'warning',
  'rollout.reverted': 'warning',
  'rollout.pruned': 'info',
  'state.planned': 'info',
  'state.verified': 'info',
  'state.apply_started': 'info',
  'state.apply_succeeded': 'info',
  'state.apply_failed': 'warning',
  'state.apply_interrupted': 'warning',
  'state.apply_cancelled': 'notice',
  'state.apply_rolled_back': 'warning',
  'state.operations_pruned': 'info',
  'state.outputs_pruned': 'info',
  'drift.checked': 'info',
  'drift.detected': 'warning',
  'drift.resolved': 'info',
  'drift.failed': 'warning',
  'drift.pruned': 'info',
  'drift.snoozed': 'notice',
  'drift.snooze_ended': 'notice',
  'drift.accepted': 'notice',
  'enforcement.stopped': 'warning',
  'enforcement.resumed': 'notice',
  'secret.created': 'info',
  'secret.updated': 'info',
  'secret.deleted': 'notice',
  'secret.used': 'info',
  'secret.expired': 'warning',
  'secret.key_rotated': 'notice',
  'channel.created': 'notice',
  'channel.updated': 'notice',
  'channel.deleted': 'notice',
  'channel.tested': 'info',
  'channel.delivery_failed': 'warning',
  'notification.pruned': 'info',
  'terminal.opened': 'notice',
  'terminal.closed': 'info',
  'terminal.interrupted': 'warning',
  'terminal.attached': 'notice',
  'terminal.taken_over': 'warning',
  'terminal.refused': 'warning',
  'terminal.transcript_read': 'notice',
  'terminal.transcript_found': 'notice',
  'terminal.transcripts_pruned': 'info',
  'forward.opened': 'notice',
  'forward.closed': 'info',
  'forward.refused': 'warning',
  'copy.opened': 'notice',
  'copy.closed': 'info',
  'copy.refused': 'warning',
  'maintenance.created': 'notice',
  'maintenance.updated': 'notice',
  'maintenance.deleted': 'notice',
  'maintenance.started': 'notice',
  'maintenance.ended': 'notice',
  'audit.pruned': 'warning',
  'audit.retention_changed': 'warning',
  'audit.key_changed': 'critical',
  'audit.events_lost': 'critical',
  'orchestrator.started': 'info',
  'orchestrator.stopped': 'info',
  'orchestrator.discovery_sent': 'info',
  'orchestrator.backed_up': 'info',
  'orchestrator.restored': 'critical',
  'orchestrator.store_damaged': 'critical',
  'orchestrator.identity_changed': 'critical',
  'orchestrator.clock_jumped': 'warning',
  'orchestrator.clock_accepted': 'notice',
  'orchestrator.certificate_expiring': 'warning',
  'orchestrator.certificate_expired': 'critical',
} as const satisfies Record<string, Severity>;

export type EventType = keyof typeof EVENT_SEVERITY;

/**
 * Events of requests that changed nothing: refusals, and reads that are audited. A request that caused only such events may be
 * repeated.
 */
export const BEGINS_NOTHING: ReadonlySet<EventType> = new Set<EventType>([
  'assignment.planned',
  'rollout.planned',
  'state.planned',
  'state.verified',
  'drift.checked',
  'drift.detected',
  'drift.resolved',
  'drift.failed',
  'secret.used',
  'terminal.refused',
  'terminal.transcript_read',
  'terminal.transcript_found',
  'forward.refused',
  'copy.refused',
]);

/** Origin of a request: actor, ID and address, for every operation that writes. */
export interface RequestContext {
  readonly actor: Party;
  /** ID that is also in the log line, stored in the audit event's metadata as `request_id`. */
  /** What the actor may do, and where. */
  readonly rights: Rights;
  readonly requestId: string;
  /** Address of the client; null for the orchestrator itself. */
  readonly address: string | null;
  /** Tags of the states of which the request may replace one, or `*`; absent or null without that condition. See `requireMatch`. */
  readonly ifMatch?: readonly string[] | null;
}

/** Returns the event with the request's actor, and with `request_id` in its metadata. */
export const eventOfRequest = (
  context: RequestContext,
  event: Omit<DomainEvent, 'actor' | 'metadata'> & { readonly metadata?: JsonObject },
): DomainEvent => ({
  ...event,
  actor: context.actor,
  metadata: { ...event.metadata, request_id: context.requestId },
});

/** The audit log as the target of events. */
export const AUDIT_LOG: Party = { id: 'audit', name: 'audit log', type: 'audit' };
