/** Believed state of machines, and operations. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { ErrorSchema, OutputSchema, ResourceResultSchema, SummarySchema } from '../resources/result.js';
import { ModuleFilesSchema } from './files.js';
import { OneOffValuesSchema, valueInputs } from './one-off-values.js';
import { route } from './route.js';
import { ChecksSchema, RestoresSchema, RunEventSchema, RunStatusSchema, settledSources, undoing } from './runs.js';
import { limitOf, NEXT_PAGE, NodeId, NodeParams, Offset, pageMembers, pathId, Seconds, ulidOf } from './shapes.js';
import { TrialSchema } from './standings.js';

export const OperationSchema = closed({
  operation_id: ulidOf('ID of the operation'),
  node_id: NodeId,
  node_name: nullable(Type.String({ description: 'Name of the agent; null for one without a name' })),
  kind: Type.Literal('apply', { description: 'Kind of the operation' }),
  status: RunStatusSchema,
  modules: Type.Array(Type.String(), { description: 'Names of the applied modules' }),
  assignments: Type.Array(Type.String(), { description: 'Assignments that gave modules' }),
  rollout_id: nullable(ulidOf('The rollout that it belongs to; null outside a rollout')),
  requested_by: Type.String({
    description: 'operator_id; for an automatic apply its cause and assignment, such as `enforce:web`',
  }),
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
  resources: Type.Array(ResourceResultSchema, { description: 'Result of each resource, in the order of the apply' }),
  checks: ChecksSchema,
  values: optional(OneOffValuesSchema),
  ...settledSources,
});
export type OperationDetail = Type.Static<typeof OperationDetailSchema>;

const managedMembers = {
  module: Type.String({ description: 'Name of the module' }),
  kind: Type.String({ description: 'Kind of the resource, such as file-unix' }),
  identity: Type.String({ description: 'Path or name of the resource on the machine' }),
};

const AppliedSchema = closed({
  ...managedMembers,
  applied_at: Seconds,
  operation_id: ulidOf('The last apply of the resource'),
  origin: Type.Enum(['created', 'adopted'], {
    description:
      'created: orch made it, and a removal deletes it; adopted: it existed before, and a removal releases it',
  }),
});

export const StateSchema = closed({
  node_id: NodeId,
  operation_id: nullable(ulidOf('The last apply that changed the state; null before the first')),
  restores: optional(RestoresSchema),
  ...valueInputs,
  trial: optional({ ...TrialSchema, description: 'What the agent has on trial; absent without a trial' }),
  applied: Type.Array(AppliedSchema, { description: 'Resources that orch manages on the machine' }),
  pending_removals: Type.Array(AppliedSchema, {
    description: 'Applied resources that the modules no longer declare; the next apply removes them',
  }),
  unapplied: Type.Array(closed(managedMembers), { description: 'Resources of the modules that are not applied yet' }),
});
export type State = Type.Static<typeof StateSchema>;

export const OPERATION_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

const listQuery = {
  limit: optional(limitOf(OPERATION_LIST_LIMIT.standard, OPERATION_LIST_LIMIT.maximum)),
  offset: Offset,
  status: optional({ ...RunStatusSchema, description: 'Only operations with this status' }),
  rollout: optional(Type.String({ description: 'rollout_id' })),
};
export const OperationListSchema = closed({
  operations: Type.Array(OperationSchema, { description: 'Operations of this page, most recent first' }),
  ...pageMembers,
});
const operationParams = closed({ operation_id: pathId('ID of the operation') });

const SelectedAgents = optional(Type.String({ description: 'Selector: only of approved agents that match' }));

export const operationRoutes = {
  getState: route({
    id: 'getState',
    summary: 'The believed state of the agent',
    tag: 'state',
    method: 'GET',
    path: '/agents/{node_id}/state',
    access: 'read',
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
    access: 'read',
    params: NodeParams,
    answers: {
      200: closed({
        operation_id: nullable(ulidOf('The apply that began the trial; null without one')),
        modules: Type.Array(
          closed({
            module: Type.String({ description: 'Name of the module' }),
            sha256: Type.String({ description: 'SHA-256 of the text on trial' }),
            replaces: nullable(
              Type.String({ description: 'SHA-256 of the stored revision that it was made from; null for none' }),
            ),
            content: Type.String({ description: 'The text on trial' }),
            files: Type.Optional(ModuleFilesSchema),
          }),
          { description: 'Modules on trial' },
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
    access: 'read',
    params: NodeParams,
    query: closed(listQuery),
    answers: { 200: OperationListSchema },
    headers: NEXT_PAGE,
    faults: ['agent_not_found'],
  }),
  getOperationOutput: route({
    id: 'getOperationOutput',
    summary: 'Captured script output of an operation, by module and identity',
    tag: 'state',
    method: 'GET',
    path: '/agents/{node_id}/state/operations/{operation_id}/output',
    access: 'apply',
    params: closed({ ...NodeParams.properties, ...operationParams.properties }),
    answers: {
      200: closed({
        operation_id: ulidOf('ID of the operation'),
        output: Type.Record(Type.String(), OutputSchema, {
          description: 'Output of each script, by `MODULE/IDENTITY`',
        }),
      }),
    },
    faults: ['agent_not_found', 'operation_not_found'],
  }),
  listOperations: route({
    id: 'listOperations',
    summary: 'Operations of all agents, most recent first',
    tag: 'state',
    method: 'GET',
    path: '/state/operations',
    access: 'read',
    grants: 'filtered',
    query: closed({ ...listQuery, filter: SelectedAgents }),
    answers: { 200: OperationListSchema },
    headers: NEXT_PAGE,
    faults: ['invalid_selector'],
  }),
  getOperation: route({
    id: 'getOperation',
    summary: 'One operation with its resources; a stream replays it and follows it to the end',
    tag: 'state',
    method: 'GET',
    path: '/state/operations/{operation_id}',
    access: 'read',
    grants: 'filtered',
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
    access: 'cancel',
    grants: 'filtered',
    params: operationParams,
    location: '/state/operations/{operation_id}',
    answers: { 202: OperationSchema },
    faults: ['operation_not_found', 'operation_finished'],
  }),
} as const;
