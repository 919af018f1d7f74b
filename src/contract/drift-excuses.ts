/** Snoozed and accepted drift: differences that do not count. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { NodeId, NodeParams, pathId, Seconds, Ulid, ulidOf } from './shapes.js';

const ResourceAddressSchema = closed({
  module: Type.String({ description: 'Name of the module' }),
  kind: Type.String({ description: 'Kind of the resource, such as file-unix' }),
  identity: Type.String({ description: 'Path or name of the resource on the machine' }),
});
export type DriftedAddress = Type.Static<typeof ResourceAddressSchema>;

const Reason = Type.String({ pattern: '\\S', minLength: 1, maxLength: 512, description: 'Why, for people' });

export const DriftSnoozeSchema = closed({
  snooze_id: ulidOf('ID of the snooze'),
  node_id: NodeId,
  resources: nullable(Type.Array(ResourceAddressSchema, { description: 'Null for all resources of the agent' })),
  reason: Type.String({ description: 'Why, for people' }),
  ends_at: Seconds,
  created_at: Seconds,
  created_by: Type.String({ description: 'operator_id' }),
});
export type DriftSnooze = Type.Static<typeof DriftSnoozeSchema>;

export const DriftAcceptSchema = closed({
  node_id: NodeId,
  ...ResourceAddressSchema.properties,
  reason: nullable(Type.String({ description: 'Why, for people; null without a reason' })),
  drift_id: Type.String({ description: 'Record with the accepted drift' }),
  accepted_at: Seconds,
  accepted_by: Type.String({ description: 'operator_id' }),
});
export type DriftAccept = Type.Static<typeof DriftAcceptSchema>;

/** Maximum resources of one snooze or one acceptance. */
const RESOURCES = 1_000;

export const driftExcuseRoutes = {
  listDriftExcuses: route({
    id: 'listDriftExcuses',
    summary: 'Snoozes that have not ended, and accepted drift that still counts as accepted',
    tag: 'drift',
    method: 'GET',
    path: '/drift-excuses',
    access: 'read',
    grants: 'filtered',
    query: closed({ node: optional(Type.String({ description: 'node_id' })) }),
    answers: {
      200: closed({
        snoozes: Type.Array(DriftSnoozeSchema, { description: 'Snoozes that have not ended' }),
        accepts: Type.Array(DriftAcceptSchema, { description: 'Accepted differences' }),
      }),
    },
    faults: ['agent_not_found'],
  }),
  snoozeDrift: route({
    id: 'snoozeDrift',
    summary: 'Let drift of an agent, or of some of its resources, not count until a time',
    tag: 'drift',
    method: 'POST',
    path: '/agents/{node_id}/drift/snoozes',
    access: 'accept-drift',
    params: NodeParams,
    body: closed({
      resources: optional(
        Type.Array(ResourceAddressSchema, {
          minItems: 1,
          maxItems: RESOURCES,
          description: 'Managed resources; absent: all of the agent, also later ones',
        }),
      ),
      ends_at: Type.Integer({ minimum: 0, maximum: 253_402_300_799, description: 'Unix time in seconds (UTC)' }),
      reason: Reason,
    }),
    location: '/drift-snoozes/{snooze_id}',
    answers: { 201: DriftSnoozeSchema },
    statuses: { resource_not_found: 404 },
    faults: ['agent_not_found', 'resource_not_found'],
  }),
  endDriftSnooze: route({
    id: 'endDriftSnooze',
    summary: 'End a snooze now',
    tag: 'drift',
    method: 'DELETE',
    path: '/drift-snoozes/{snooze_id}',
    access: 'accept-drift',
    grants: 'filtered',
    params: closed({ snooze_id: pathId('ID of the snooze') }),
    answers: { 204: null },
    faults: ['snooze_not_found'],
  }),
  acceptDrift: route({
    id: 'acceptDrift',
    summary: 'Take the state that a drift check found as the expected one, until the next apply or the next difference',
    tag: 'drift',
    method: 'POST',
    path: '/agents/{node_id}/drift/accepts',
    access: 'accept-drift',
    params: NodeParams,
    body: closed({
      drift_id: { ...Ulid, description: 'The newest drift record of the agent that has a result' },
      resources: Type.Array(ResourceAddressSchema, {
        minItems: 1,
        maxItems: RESOURCES,
        description: 'Different resources of the record',
      }),
      reason: optional(Reason),
    }),
    answers: { 200: Type.Array(DriftAcceptSchema) },
    faults: ['agent_not_found', 'drift_not_found', 'drift_unacceptable'],
  }),
} as const;
