/** The audit log. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { limitOf, Ulid } from './shapes.js';

export const SEVERITIES = ['info', 'notice', 'warning', 'critical'] as const;

const Party = closed({ id: Type.String(), name: Type.String(), type: Type.String() });

export const AuditEventSchema = closed({
  id: Ulid,
  event_type: Type.String(),
  severity: Type.Enum(SEVERITIES),
  summary: Type.String(),
  timestamp: Type.String({ description: 'RFC 3339 in UTC with milliseconds' }),
  metadata: Type.Record(Type.String(), Type.Unknown()),
  actor: Party,
  target: Party,
});
export type AuditEvent = Type.Static<typeof AuditEventSchema>;

export const AUDIT_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

export const auditRoutes = {
  listAuditEvents: route({
    id: 'listAuditEvents',
    summary: 'Query the audit log, newest first',
    tag: 'audit',
    method: 'GET',
    path: '/audit',
    access: 'viewer',
    query: closed({
      agent: optional(Type.String({ description: 'Node ID or name' })),
      operator: optional(Type.String({ description: 'Operator ID or username' })),
      event_type: optional(Type.String({ description: 'Exact dotted event type' })),
      category: optional(Type.String({ description: 'Event type prefix, for instance `agent`' })),
      after: optional(Type.String({ description: 'Earliest timestamp to include, RFC 3339' })),
      before: optional(Type.String({ description: 'Latest timestamp, exclusive, RFC 3339' })),
      cursor: optional(Type.String({ description: 'ID of the last event of the page before' })),
      limit: optional(limitOf(AUDIT_LIST_LIMIT.standard, AUDIT_LIST_LIMIT.maximum)),
    }),
    answers: {
      200: closed({
        events: Type.Array(AuditEventSchema),
        has_more: Type.Boolean(),
        next_cursor: nullable(Ulid),
      }),
    },
    faults: ['invalid_filter', 'invalid_cursor'],
  }),
} as const;
