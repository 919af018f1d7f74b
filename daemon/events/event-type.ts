/** Every audit event type and how much it matters. */
import type { SEVERITIES } from '../../src/contract/audit.js';

export type Severity = (typeof SEVERITIES)[number];

export const EVENT_SEVERITY = {
  'operator.added': 'warning',
  'operator.removed': 'warning',
  'operator.login': 'info',
  'operator.login_failed': 'warning',
  'operator.logout': 'info',
  'agent.pending': 'notice',
  'agent.approved': 'notice',
  'agent.rejected': 'notice',
  'agent.removed': 'notice',
  'agent.connected': 'info',
  'agent.disconnected': 'notice',
  'agent.tags_changed': 'info',
  'agent.attributes_changed': 'info',
  'agent.refused': 'warning',
  'agent.protocol_violation': 'warning',
  'agent.duplicate_identity': 'critical',
  'module.uploaded': 'info',
  'module.deleted': 'notice',
  'state.planned': 'info',
  'state.apply_started': 'info',
  'state.apply_succeeded': 'info',
  'state.apply_failed': 'warning',
  'state.apply_interrupted': 'warning',
  'state.apply_cancelled': 'notice',
  'drift.checked': 'info',
  'drift.detected': 'warning',
  'drift.resolved': 'info',
  'drift.failed': 'warning',
  'orchestrator.started': 'info',
  'orchestrator.stopped': 'info',
} as const satisfies Record<string, Severity>;

export type EventType = keyof typeof EVENT_SEVERITY;
