/** Assignments: modules for every agent of a selector, and the rollouts over those agents. */
import * as Type from 'typebox';
import { ASSIGNMENT_MODES } from '../kernel/assignment-modes.js';
import type { JsonValue } from '../kernel/json.js';
import { closed, nullable, optional } from '../kernel/schema.js';
import {
  APPLY_ROLLOUT_LIMITS,
  applyRolloutBody,
  PLAN_ROLLOUT_LIMITS,
  planRolloutBody,
  RolloutEventSchema,
  RolloutSchema,
} from './rollouts.js';
import { route } from './route.js';
import { AgentName, NodeId, pathName, Seconds } from './shapes.js';

const Mode = Type.Enum(ASSIGNMENT_MODES, {
  description:
    'When the orchestrator applies by itself: never; when an agent connects and something is missing; also whenever a module changes or a machine drifts',
});

const AnyJson = Type.Unsafe<JsonValue>(Type.Unknown());

const Values = Type.Record(Type.String(), Type.Record(Type.String(), AnyJson), {
  description: 'Values of inputs by module, above those of value sets',
});

const REVIEW_REASONS = ['maker_left', 'maker_lost_rights'] as const;
export type ReviewReason = (typeof REVIEW_REASONS)[number];

export const AssignmentSchema = closed({
  name: Type.String({ description: 'Name of the assignment' }),
  modules: Type.Array(Type.String(), { description: 'Names of its modules, in the order of their application' }),
  selector: Type.String({ description: 'Which approved agents get the modules, such as `tag.role=web`' }),
  description: nullable(Type.String({ description: 'Text for people; null without one' })),
  created_at: Seconds,
  created_by: Type.String({ description: 'operator_id' }),
  mode: Mode,
  stopped_reason: nullable(
    Type.String({
      description: 'Why its automatic applies have stopped until an operator resumes them; null if they go on',
    }),
  ),
  values: nullable(Values),
  scope: Type.Optional(
    Type.Array(Type.String(), {
      description: "Machines of its maker's grants, one of which must match as well; absent for all machines",
    }),
  ),
  review: Type.Optional(
    Type.Enum(REVIEW_REASONS, {
      description:
        'Why an assignment with a scope should be looked at, which goes on as it is: its maker was removed or has expired; its maker may no longer apply there',
    }),
  ),
});
export type Assignment = Type.Static<typeof AssignmentSchema>;

export const AssignmentDetailSchema = closed({
  ...AssignmentSchema.properties,
  agents: Type.Array(closed({ node_id: NodeId, name: AgentName }), {
    description: 'Approved agents that the selector matches now, by name',
  }),
});
export type AssignmentDetail = Type.Static<typeof AssignmentDetailSchema>;

const params = closed({ name: pathName('Name of the assignment') });
const moduleNames = Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
  maxItems: 1000,
  description: 'None: a selection of agents for rollouts that name their modules',
});
const description = Type.String({ maxLength: 4096, description: 'Text for people' });

export const assignmentRoutes = {
  listAssignments: route({
    id: 'listAssignments',
    summary: 'List assignments by name',
    tag: 'assignments',
    method: 'GET',
    path: '/assignments',
    access: 'read',
    grants: 'shared',
    answers: { 200: Type.Array(AssignmentSchema) },
    faults: [],
  }),
  createAssignment: route({
    id: 'createAssignment',
    summary: 'Assign modules to every agent that a selector matches; applies nothing',
    tag: 'assignments',
    method: 'POST',
    path: '/assignments',
    access: 'assign',
    grants: 'filtered',
    tagged: true,
    body: closed({
      name: Type.String({ description: 'Name of the new assignment: letters, digits, `.`, `_` and `-`' }),
      modules: moduleNames,
      selector: Type.String({
        description: 'Which approved agents get the modules, such as `tag.role=web`; `*` for all',
      }),
      description: optional(description),
      mode: optional(Mode),
      values: optional(Values),
    }),
    location: '/assignments/{name}',
    answers: { 201: AssignmentSchema },
    faults: ['invalid_name', 'invalid_selector', 'unknown_module', 'assignment_exists', 'invalid_values'],
  }),
  getAssignment: route({
    id: 'getAssignment',
    summary: 'One assignment with the agents that it matches now',
    tag: 'assignments',
    method: 'GET',
    path: '/assignments/{name}',
    access: 'read',
    grants: 'filtered',
    tagged: true,
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
    access: 'assign',
    grants: 'filtered',
    tagged: true,
    params,
    body: closed({
      modules: optional(moduleNames),
      selector: optional(Type.String({ description: 'Which approved agents get the modules' })),
      description: optional(Type.String({ maxLength: 4096, description: 'An empty text removes it' })),
      mode: optional(Mode),
      values: optional(
        Type.Record(Type.String(), Type.Record(Type.String(), AnyJson), {
          description: 'Values of inputs by module, in the place of all before; an empty mapping removes them',
        }),
      ),
    }),
    answers: { 200: AssignmentSchema },
    faults: ['assignment_not_found', 'invalid_selector', 'unknown_module', 'invalid_values'],
  }),
  resumeAssignment: route({
    id: 'resumeAssignment',
    summary: 'Let automatic applies that have stopped go on, of the assignment and of the agents that it matches',
    tag: 'assignments',
    method: 'POST',
    path: '/assignments/{name}/resume',
    access: 'apply',
    grants: 'filtered',
    params,
    answers: { 200: AssignmentSchema },
    faults: ['assignment_not_found'],
  }),
  removeAssignment: route({
    id: 'removeAssignment',
    summary: "Delete an assignment; the next apply of each agent removes the assignment's resources",
    tag: 'assignments',
    method: 'DELETE',
    path: '/assignments/{name}',
    access: 'assign',
    grants: 'filtered',
    tagged: true,
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
    access: 'plan',
    grants: 'filtered',
    params,
    body: closed(planRolloutBody),
    ...PLAN_ROLLOUT_LIMITS,
    bodyOptional: true,
    answers: { 200: RolloutSchema },
    stream: RolloutEventSchema,
    faults: [
      'assignment_not_found',
      'module_not_found',
      'invalid_module',
      'file_not_found',
      'invalid_values',
      'rate_limited',
    ],
  }),
  applyAssignment: route({
    id: 'applyAssignment',
    summary: 'Apply to every agent that the selector matches now',
    tag: 'assignments',
    method: 'POST',
    path: '/assignments/{name}/apply',
    access: 'apply',
    grants: 'filtered',
    params,
    body: closed(applyRolloutBody),
    ...APPLY_ROLLOUT_LIMITS,
    bodyOptional: true,
    location: '/rollouts/{rollout_id}',
    answers: { 200: RolloutSchema, 202: RolloutSchema },
    stream: RolloutEventSchema,
    faults: [
      'assignment_not_found',
      'module_not_found',
      'outside_window',
      'invalid_module',
      'invalid_values',
      'file_not_found',
      'rate_limited',
    ],
  }),
} as const;
