/** Believed state of machines, and operations. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { ErrorSchema, OutputSchema, ResourceResultSchema, SummarySchema } from '../resources/result.js';
import { ModuleFilesSchema } from './files.js';
import { OneOffValuesSchema, valueInputs } from './one-off-values.js';
import { route } from './route.js';
import { ChecksSchema, RestoresSchema, RunEventSchema, RunStatusSchema, settledSources, undoing } from './runs.js';
import { KeyId, limitOf, NodeParams, Seconds, Ulid } from './shapes.js';
import { TrialSchema } from './standings.js';

export const OperationSchema = closed({
  operation_id: Ulid,
  node_id: KeyId,
  node_name: nullable(Type.String()),
  kind: Type.Literal('apply'),
  status: RunStatusSchema,
  modules: Type.Array(Type.String()),
  assignments: Type.Array(Type.String()),
  /** Null outside a rollout. */
  rollout_id: nullable(Ulid),
  requested_by: Type.String(),
  started_at: Seconds,
  finished_at: nullable(Seconds),
  summary: SummarySchema,
  error: nullable(ErrorSchema),
  restores: optional(RestoresSchema),
  ...valueInputs,
  ...undoing,
});
export type Operation = Type.Static<typeof OperationSchema>;

export const OperationDetailSchema = closed({
  ...OperationSchema.properties,
  resources: Type.Array(ResourceResultSchema),
  checks: ChecksSchema,
  values: optional(OneOffValuesSchema),
  ...settledSources,
});
export type OperationDetail = Type.Static<typeof OperationDetailSchema>;

const AppliedSchema = closed({
  module: Type.String(),
  kind: Type.String(),
  identity: Type.String(),
  applied_at: Seconds,
  operation_id: Ulid,
  origin: Type.Enum(['created', 'adopted']),
});

export const StateSchema = closed({
  node_id: KeyId,
  operation_id: nullable(Ulid),
  restores: optional(RestoresSchema),
  ...valueInputs,
  trial: optional({ ...TrialSchema, description: 'What the agent has on trial; absent without a trial' }),
  applied: Type.Array(AppliedSchema),
  pending_removals: Type.Array(AppliedSchema),
  unapplied: Type.Array(closed({ module: Type.String(), kind: Type.String(), identity: Type.String() })),
});
export type State = Type.Static<typeof StateSchema>;

export const OPERATION_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

const listQuery = {
  limit: optional(limitOf(OPERATION_LIST_LIMIT.standard, OPERATION_LIST_LIMIT.maximum)),
  offset: optional(Type.Integer({ minimum: 0 })),
  status: optional(RunStatusSchema),
  rollout: optional(Type.String({ description: 'rollout_id' })),
};
const OperationListSchema = closed({
  operations: Type.Array(OperationSchema),
  total: Type.Integer(),
  limit: Type.Integer(),
  offset: Type.Integer(),
});
const operationParams = closed({ operation_id: Type.String({ minLength: 1, maxLength: 64 }) });

const SelectedAgents = optional(Type.String({ description: 'Selector: only of approved agents that match' }));

export const operationRoutes = {
  getState: route({
    id: 'getState',
    summary: 'The believed state of the agent',
    tag: 'state',
    method: 'GET',
    path: '/agents/{node_id}/state',
    access: 'viewer',
    params: NodeParams,
    answers: { 200: StateSchema },
    faults: ['agent_not_found'],
  }),
  getTrial: route({
    id: 'getTrial',
    summary: 'The modules that the agent has on trial, with their texts; empty without a trial',
    tag: 'state',
    method: 'GET',
    path: '/agents/{node_id}/trial',
    access: 'viewer',
    params: NodeParams,
    answers: {
      200: closed({
        operation_id: nullable(Ulid),
        modules: Type.Array(
          closed({
            module: Type.String(),
            sha256: Type.String(),
            replaces: nullable(
              Type.String({ description: 'SHA-256 of the stored revision that it was made from; null for none' }),
            ),
            content: Type.String(),
            files: Type.Optional(ModuleFilesSchema),
          }),
        ),
      }),
    },
    faults: ['agent_not_found'],
  }),
  listAgentOperations: route({
    id: 'listAgentOperations',
    summary: 'Operations of one agent, most recent first',
    tag: 'state',
    method: 'GET',
    path: '/agents/{node_id}/state/operations',
    access: 'viewer',
    params: NodeParams,
    query: closed(listQuery),
    answers: { 200: OperationListSchema },
    faults: ['agent_not_found'],
  }),
  getOperationOutput: route({
    id: 'getOperationOutput',
    summary: 'Captured script output of an operation, by module and identity',
    tag: 'state',
    method: 'GET',
    path: '/agents/{node_id}/state/operations/{operation_id}/output',
    access: 'operator',
    params: closed({ ...NodeParams.properties, ...operationParams.properties }),
    answers: { 200: closed({ operation_id: Ulid, output: Type.Record(Type.String(), OutputSchema) }) },
    faults: ['agent_not_found', 'operation_not_found'],
  }),
  listOperations: route({
    id: 'listOperations',
    summary: 'Operations of all agents, most recent first',
    tag: 'state',
    method: 'GET',
    path: '/state/operations',
    access: 'viewer',
    query: closed({ ...listQuery, filter: SelectedAgents }),
    answers: { 200: OperationListSchema },
    faults: ['invalid_selector'],
  }),
  getOperation: route({
    id: 'getOperation',
    summary: 'One operation with its resources; a stream replays it and follows it to the end',
    tag: 'state',
    method: 'GET',
    path: '/state/operations/{operation_id}',
    access: 'viewer',
    params: operationParams,
    answers: { 200: OperationDetailSchema },
    stream: RunEventSchema,
    faults: ['operation_not_found'],
  }),
  cancelOperation: route({
    id: 'cancelOperation',
    summary: 'Cancel a running operation at the next resource boundary',
    tag: 'state',
    method: 'POST',
    path: '/state/operations/{operation_id}/cancel',
    access: 'operator',
    params: operationParams,
    answers: { 202: OperationSchema },
    faults: ['operation_not_found', 'operation_finished'],
  }),
} as const;
