/** Routes and schemas of the audit log. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { limitOf, OperatorFilter, Ulid } from './shapes.js';

const Timestamp = Type.String({ format: 'date-time', description: 'RFC 3339 in UTC with milliseconds' });

export const SEVERITIES = ['info', 'notice', 'warning', 'critical'] as const;

const Party = closed({ id: Type.String(), name: Type.String(), type: Type.String() });

export const AuditEventSchema = closed({
  id: Ulid,
  event_type: Type.String(),
  severity: Type.Enum(SEVERITIES),
  summary: Type.String(),
  timestamp: Timestamp,
  metadata: Type.Record(Type.String(), Type.Unknown()),
  actor: Party,
  target: Party,
});
export type AuditEvent = Type.Static<typeof AuditEventSchema>;

export const AUDIT_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

/** Maximum retention of events in days. */
export const MAX_RETENTION_DAYS = 36_500;

const AuditRetentionSchema = closed({
  retention_days: nullable(
    Type.Integer({ minimum: 1, maximum: MAX_RETENTION_DAYS, description: 'null keeps events for ever' }),
  ),
});

const Seq = Type.Integer({ description: 'Number of an event; without gaps, from 1' });
const Hash = Type.String({ description: 'Hash of the event with that number and all events before it, in hex' });

const AuditProblemSchema = closed({
  what: Type.Enum(['altered', 'missing', 'out_of_order', 'cut', 'rewritten', 'bad_signature']),
  seq: Type.Integer({ description: 'Number of the first altered event' }),
  id: nullable(Ulid),
  detail: Type.String(),
});
export type AuditProblem = Type.Static<typeof AuditProblemSchema>;

export const AuditVerificationSchema = closed({
  intact: Type.Boolean(),
  events: Type.Integer({ description: 'Number of checked and unaltered events' }),
  first_seq: nullable(Seq),
  last_seq: nullable(Seq),
  checkpoints: Type.Integer({ description: 'Number of checked checkpoints' }),
  pruned: nullable(closed({ seq: Seq, hash: Hash, pruned_at: Timestamp })),
  checkpoint: nullable(
    closed({
      epoch: Type.Integer(),
      seq: Seq,
      hash: Hash,
      signed_at: Timestamp,
      text: Type.String({ description: 'Text to keep elsewhere and to pass as `since` later' }),
    }),
  ),
  public_key: Type.String({ description: 'Public half of the signing key, in hex' }),
  since: nullable(
    closed({
      epoch: Type.Integer(),
      seq: Seq,
      found: Type.Enum(['confirmed', 'pruned', 'not_confirmed'], {
        description: 'State of the event of the given checkpoint: in the log unchanged, pruned, or neither',
      }),
    }),
  ),
  problem: nullable(AuditProblemSchema),
});
export type AuditVerification = Type.Static<typeof AuditVerificationSchema>;

const FILTER = {
  agent: optional(Type.String({ description: 'Node ID or name' })),
  operator: OperatorFilter,
  event_type: optional(Type.String({ description: 'Exact dotted event type' })),
  category: optional(Type.String({ description: 'Event type prefix, for instance `agent`' })),
  after: optional(Type.String({ description: 'Earliest timestamp to include, RFC 3339' })),
};

export const auditRoutes = {
  listAuditEvents: route({
    id: 'listAuditEvents',
    summary: 'Query the audit log, newest first',
    tag: 'audit',
    method: 'GET',
    path: '/audit',
    access: 'viewer',
    query: closed({
      ...FILTER,
      before: optional(Type.String({ description: 'Latest timestamp, exclusive, RFC 3339' })),
      cursor: optional(Type.String({ description: 'ID of the last event on the previous page' })),
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
  pruneAuditEvents: route({
    id: 'pruneAuditEvents',
    summary: 'Delete the audit events before a time',
    tag: 'audit',
    method: 'DELETE',
    path: '/audit',
    access: 'admin',
    query: closed({ before: Type.String({ description: 'Events strictly before it are deleted, RFC 3339' }) }),
    answers: { 200: closed({ deleted: Type.Integer() }) },
    faults: ['invalid_cutoff'],
  }),
  getAuditRetention: route({
    id: 'getAuditRetention',
    summary: 'Retention of audit events in days',
    tag: 'audit',
    method: 'GET',
    path: '/audit/retention',
    access: 'viewer',
    tagged: true,
    answers: { 200: AuditRetentionSchema },
    faults: [],
  }),
  setAuditRetention: route({
    id: 'setAuditRetention',
    summary: 'Set the retention of audit events in days',
    tag: 'audit',
    method: 'PUT',
    path: '/audit/retention',
    access: 'admin',
    tagged: true,
    body: AuditRetentionSchema,
    answers: { 200: AuditRetentionSchema },
    faults: [],
  }),
  verifyAudit: route({
    id: 'verifyAudit',
    summary: 'Check that no audit event was altered or removed',
    tag: 'audit',
    method: 'GET',
    path: '/audit/verify',
    access: 'viewer',
    query: closed({ since: optional(Type.String({ description: 'Text of an earlier checkpoint' })) }),
    answers: { 200: AuditVerificationSchema },
    faults: ['invalid_checkpoint'],
  }),
  streamEvents: route({
    id: 'streamEvents',
    summary: 'Follow the audit log: events as they are written, oldest first',
    tag: 'audit',
    method: 'GET',
    path: '/events',
    access: 'viewer',
    query: closed(FILTER),
    answers: {
      200: Type.String({
        description:
          'Server-sent events; the ID of each is that of the audit event. Last-Event-ID goes on behind it; without it and ' +
          '`after` the stream begins with what is written from now on. Comments tell that the connection lives. An event of ' +
          'the type `error` holds the problem document that ends the stream.',
      }),
    },
    mediaType: 'text/event-stream',
    events: AuditEventSchema,
    faults: ['invalid_filter', 'invalid_cursor', 'rate_limited'],
  }),
} as const;
