/** Routes and schemas of the audit log. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { limitOf, NEXT_PAGE, OperatorFilter, ulidOf } from './shapes.js';

const Timestamp = Type.String({ format: 'date-time', description: 'RFC 3339 in UTC with milliseconds' });

export const SEVERITIES = ['info', 'notice', 'warning', 'critical'] as const;

const partyOf = (description: string) =>
  closed(
    {
      id: Type.String({ description: 'ID of the party' }),
      name: Type.String({ description: 'Name of the party at that time' }),
      type: Type.String({ description: 'Kind of the party, such as operator, agent, module or system' }),
    },
    { description },
  );

export const AuditEventSchema = closed({
  id: ulidOf('ID of the event; rises with time'),
  event_type: Type.String({ description: 'Dotted name of what happened, such as agent.approved' }),
  severity: Type.Enum(SEVERITIES, { description: 'How much attention the event needs' }),
  summary: Type.String({ description: 'The event as a sentence for people' }),
  timestamp: Timestamp,
  metadata: Type.Record(Type.String(), Type.Unknown(), { description: 'Details that depend on the type' }),
  actor: partyOf('Who did it'),
  target: partyOf('What it was done to'),
});
export type AuditEvent = Type.Static<typeof AuditEventSchema>;

export const AuditGapSchema = closed({
  after: nullable(ulidOf('ID of the last event before the gap; null without one')),
  next: ulidOf('ID of the first event after the gap, whatever the filter'),
  deleted: nullable(
    Type.Integer({ minimum: 1, description: 'Number of missing events, whatever the filter; null when unknown' }),
  ),
  detail: Type.String({ description: 'The gap as a sentence for people' }),
});
export type AuditGap = Type.Static<typeof AuditGapSchema>;

export const AUDIT_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

/** Maximum retention of events in days. */
export const MAX_RETENTION_DAYS = 36_500;

export const AuditRetentionSchema = closed({
  retention_days: nullable(
    Type.Integer({ minimum: 1, maximum: MAX_RETENTION_DAYS, description: 'null keeps events for ever' }),
  ),
});

const Seq = Type.Integer({ description: 'Number of an event; without gaps, from 1' });
const Hash = Type.String({ description: 'Hash of the event with that number and all events before it, in hex' });

const AuditProblemSchema = closed({
  what: Type.Enum(['altered', 'missing', 'out_of_order', 'cut', 'rewritten', 'bad_signature'], {
    description: 'Kind of the damage',
  }),
  seq: Type.Integer({ description: 'Number of the first altered event' }),
  id: nullable(ulidOf('ID of that event; null when it is missing')),
  detail: Type.String({ description: 'The damage as a sentence' }),
});
export type AuditProblem = Type.Static<typeof AuditProblemSchema>;

export const AuditVerificationSchema = closed({
  intact: Type.Boolean({ description: 'True when no event was altered or removed' }),
  events: Type.Integer({ description: 'Number of checked and unaltered events' }),
  first_seq: nullable(Seq),
  last_seq: nullable(Seq),
  checkpoints: Type.Integer({ description: 'Number of checked checkpoints' }),
  pruned: nullable(
    closed(
      { seq: Seq, hash: Hash, pruned_at: Timestamp },
      { description: 'The last pruned event; null if none was pruned' },
    ),
  ),
  checkpoint: nullable(
    closed(
      {
        epoch: Type.Integer({ description: 'Number that rises when the store is restored to an earlier state' }),
        seq: Seq,
        hash: Hash,
        signed_at: Timestamp,
        text: Type.String({ description: 'Text to keep elsewhere and to pass as `since` later' }),
      },
      { description: 'The newest signed checkpoint; null before the first' },
    ),
  ),
  public_key: Type.String({ description: 'Public half of the signing key, in hex' }),
  since: nullable(
    closed(
      {
        epoch: Type.Integer({ description: 'Epoch of the given checkpoint' }),
        seq: Seq,
        found: Type.Enum(['confirmed', 'pruned', 'not_confirmed'], {
          description: 'State of the event of the given checkpoint: in the log unchanged, pruned, or neither',
        }),
      },
      { description: 'Outcome for the checkpoint in `since`; null without one' },
    ),
  ),
  problem: nullable({ ...AuditProblemSchema, description: 'The first damage; null for an intact log' }),
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
    access: 'read',
    grants: 'filtered',
    query: closed({
      ...FILTER,
      before: optional(Type.String({ description: 'Latest timestamp, exclusive, RFC 3339' })),
      cursor: optional(Type.String({ description: 'ID of the last event on the previous page' })),
      limit: optional(limitOf(AUDIT_LIST_LIMIT.standard, AUDIT_LIST_LIMIT.maximum)),
    }),
    answers: {
      200: closed({
        events: Type.Array(AuditEventSchema, { description: 'Events of this page, newest first' }),
        has_more: Type.Boolean({ description: 'True when further events exist' }),
        next_cursor: nullable(ulidOf('`cursor` of the next page; null on the last one')),
      }),
    },
    headers: NEXT_PAGE,
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
    answers: { 200: closed({ deleted: Type.Integer({ description: 'Number of deleted events' }) }) },
    faults: ['invalid_cutoff'],
  }),
  getAuditRetention: route({
    id: 'getAuditRetention',
    summary: 'Retention of audit events in days',
    tag: 'audit',
    method: 'GET',
    path: '/audit/retention',
    access: 'read',
    grants: 'shared',
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
    access: 'read',
    grants: 'shared',
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
    access: 'read',
    grants: 'filtered',
    query: closed(FILTER),
    answers: {
      200: Type.String({
        description:
          'Server-sent events; the ID of each is that of the audit event. Last-Event-ID goes on behind it; without it and ' +
          '`after` the stream begins with what is written from now on. Comments tell that the connection lives. An event of ' +
          'the type `gap` tells that events after the last one that the client has got were deleted before they were sent: it ' +
          'has to read anew what it keeps. An event of the type `error` holds the problem document that ends the stream.',
      }),
    },
    mediaType: 'text/event-stream',
    events: AuditEventSchema,
    gaps: AuditGapSchema,
    faults: ['invalid_filter', 'invalid_cursor', 'rate_limited'],
  }),
} as const;
