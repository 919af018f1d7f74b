/** Assignments: modules for every agent of a selector, and rollouts over those agents. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { ErrorSchema, SummarySchema } from '../resources/result.js';
import { route } from './route.js';
import { PLAN_BODY_BYTES, PLAN_HASH, RunResultSchema, SourcesSchema } from './runs.js';
import { KeyId, Seconds, Ulid } from './shapes.js';

export const AssignmentSchema = closed({
  name: Type.String(),
  modules: Type.Array(Type.String()),
  selector: Type.String(),
  description: nullable(Type.String()),
  created_at: Seconds,
  created_by: Type.String({ description: 'operator_id' }),
});
export type Assignment = Type.Static<typeof AssignmentSchema>;

export const AssignmentDetailSchema = closed({
  ...AssignmentSchema.properties,
  agents: Type.Array(closed({ node_id: KeyId, name: nullable(Type.String()) }), {
    description: 'Approved agents that the selector matches now, by name',
  }),
});
export type AssignmentDetail = Type.Static<typeof AssignmentDetailSchema>;

const ROLLOUT_STATUSES = ['succeeded', 'failed', 'unreachable', 'skipped'] as const;

const rolloutResult = {
  node_id: KeyId,
  name: nullable(Type.String()),
  status: Type.Enum(ROLLOUT_STATUSES),
  operation_id: nullable(Ulid),
  summary: nullable(SummarySchema),
  error: nullable(ErrorSchema),
};

export const RolloutResultSchema = closed(rolloutResult);
export type RolloutResult = Type.Static<typeof RolloutResultSchema>;

export const RolloutSchema = closed({
  assignment: Type.String(),
  rollout_id: Ulid,
  has_changes: Type.Boolean(),
  results: Type.Array(RolloutResultSchema),
  summary: closed({
    agents: Type.Integer(),
    succeeded: Type.Integer(),
    failed: Type.Integer(),
    unreachable: Type.Integer(),
    skipped: Type.Integer(),
  }),
});
export type Rollout = Type.Static<typeof RolloutSchema>;

/** One line of the stream of a rollout. */
export const RolloutEventSchema = Type.Union([
  closed({ event: Type.Literal('started'), rollout_id: Ulid, agents: Type.Integer() }),
  closed({ event: Type.Literal('agent'), agent: closed({ ...rolloutResult, result: nullable(RunResultSchema) }) }),
  closed({ event: Type.Literal('result'), result: RolloutSchema }),
  closed({ event: Type.Literal('error'), error: Type.Record(Type.String(), Type.Unknown()) }),
]);
export type RolloutEvent = Type.Static<typeof RolloutEventSchema>;

/** Number of agents of one rollout in flight. */
export const ROLLOUT_CONCURRENCY = { standard: 32, maximum: 1000 } as const;

const params = closed({ name: Type.String({ minLength: 1, maxLength: 128 }) });
const moduleNames = Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
  maxItems: 1000,
  description: 'None: a selection of agents for rollouts that name their modules',
});
const description = Type.String({ maxLength: 4096 });

const rolloutBody = {
  concurrency: optional(
    Type.Integer({
      minimum: 1,
      description: `Most agents at a time; default ${ROLLOUT_CONCURRENCY.standard}, maximum ${ROLLOUT_CONCURRENCY.maximum}. With \`canary\` or \`max_failures\` the rollout starts with one, and each success makes room for one more`,
    }),
  ),
  canary: optional(
    Type.Integer({
      minimum: 0,
      description: 'Number of connected agents that go first; the others start after all of them succeed',
    }),
  ),
  max_failures: optional(
    Type.Integer({
      minimum: 1,
      description:
        'Number of failed agents after which no other agent starts; never more are in flight than may still fail',
    }),
  ),
  modules: optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
      maxItems: 1000,
      description: 'Modules beside those of the assignments',
    }),
  ),
};

export const assignmentRoutes = {
  listAssignments: route({
    id: 'listAssignments',
    summary: 'List assignments by name',
    tag: 'assignments',
    method: 'GET',
    path: '/assignments',
    access: 'viewer',
    answers: { 200: Type.Array(AssignmentSchema) },
    faults: [],
  }),
  createAssignment: route({
    id: 'createAssignment',
    summary: 'Assign modules to every agent that a selector matches; applies nothing',
    tag: 'assignments',
    method: 'POST',
    path: '/assignments',
    access: 'operator',
    body: closed({
      name: Type.String(),
      modules: moduleNames,
      selector: Type.String(),
      description: optional(description),
    }),
    answers: { 201: AssignmentSchema },
    faults: ['invalid_name', 'invalid_selector', 'unknown_module', 'assignment_exists'],
  }),
  getAssignment: route({
    id: 'getAssignment',
    summary: 'One assignment with the agents that it matches now',
    tag: 'assignments',
    method: 'GET',
    path: '/assignments/{name}',
    access: 'viewer',
    params,
    answers: { 200: AssignmentDetailSchema },
    faults: ['assignment_not_found'],
  }),
  updateAssignment: route({
    id: 'updateAssignment',
    summary: 'Change an assignment; absent members stay',
    tag: 'assignments',
    method: 'PUT',
    path: '/assignments/{name}',
    access: 'operator',
    params,
    body: closed({
      modules: optional(moduleNames),
      selector: optional(Type.String()),
      description: optional(Type.String({ maxLength: 4096, description: 'An empty text removes it' })),
    }),
    answers: { 200: AssignmentSchema },
    faults: ['assignment_not_found', 'invalid_selector', 'unknown_module'],
  }),
  removeAssignment: route({
    id: 'removeAssignment',
    summary: "Delete an assignment; the next apply of each agent removes the assignment's resources",
    tag: 'assignments',
    method: 'DELETE',
    path: '/assignments/{name}',
    access: 'operator',
    params,
    answers: { 204: null },
    faults: ['assignment_not_found'],
  }),
  planAssignment: route({
    id: 'planAssignment',
    summary: 'Plan an apply on every agent that the selector matches now; writes nothing',
    tag: 'assignments',
    method: 'POST',
    path: '/assignments/{name}/plan',
    access: 'operator',
    params,
    body: closed({ ...rolloutBody, sources: optional(SourcesSchema) }),
    bodyBytes: PLAN_BODY_BYTES,
    bodyOptional: true,
    answers: { 200: RolloutSchema },
    stream: RolloutEventSchema,
    faults: ['assignment_not_found', 'module_not_found', 'invalid_module', 'rate_limited'],
  }),
  applyAssignment: route({
    id: 'applyAssignment',
    summary: 'Apply to every agent that the selector matches now',
    tag: 'assignments',
    method: 'POST',
    path: '/assignments/{name}/apply',
    access: 'operator',
    params,
    body: closed({
      ...rolloutBody,
      allow_removals: optional(
        Type.Integer({ minimum: 0, description: 'Maximum removals on each agent, in place of the removal guard' }),
      ),
      expect: optional(
        Type.Record(Type.String(), Type.String({ pattern: PLAN_HASH }), {
          description: 'plan_hash by node_id: apply to these agents alone, and only what those plans showed',
        }),
      ),
      wait: optional(Type.Boolean({ description: 'false answers 202 with the rollout at once' })),
    }),
    bodyOptional: true,
    answers: { 200: RolloutSchema, 202: RolloutSchema },
    stream: RolloutEventSchema,
    faults: ['assignment_not_found', 'module_not_found'],
  }),
  cancelRollout: route({
    id: 'cancelRollout',
    summary: 'Stop a rollout: start no other agent, and cancel its running operations at the next resource boundary',
    tag: 'assignments',
    method: 'POST',
    path: '/rollouts/{rollout_id}/cancel',
    access: 'operator',
    params: closed({ rollout_id: Type.String({ minLength: 1, maxLength: 64 }) }),
    answers: {
      202: closed({ rollout_id: Ulid, cancelled: Type.Array(Ulid, { description: 'operation_id of each' }) }),
    },
    faults: ['rollout_not_found'],
  }),
} as const;
