/** Rollouts: plan and apply on many agents, chosen by a selector, by their node IDs, or by an assignment. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { ErrorSchema, ResourceResultSchema, SummarySchema } from '../resources/result.js';
import { OneOffValuesSchema, oneOffBody, valueInputs } from './one-off-values.js';
import { ROLLOUT_CONCURRENCY } from './rollout-concurrency.js';
import { route } from './route.js';
import {
  AppliedSourcesSchema,
  applyLimitsBody,
  PLAN_BODY_BYTES,
  PLAN_HASH,
  RunResultSchema,
  SourcesSchema,
} from './runs.js';
import {
  AgentName,
  KeyId,
  limitOf,
  NEXT_PAGE,
  NodeId,
  Offset,
  pageMembers,
  pathId,
  Seconds,
  Ulid,
  ulidOf,
} from './shapes.js';

const ROLLOUT_STATUSES = ['succeeded', 'failed', 'unreachable', 'skipped'] as const;

/** States of a rollout. The last four end it. */
export const ROLLOUT_STATES = [
  'running',
  'paused',
  'halted',
  'reverting',
  'succeeded',
  'failed',
  'cancelled',
  'reverted',
] as const;

export const ROLLOUT_AGENT_STATES = [
  'waiting',
  'running',
  'succeeded',
  'failed',
  'unreachable',
  'skipped',
  'reverted',
] as const;

/** The reaction to a bound that is reached or a health check that fails. */
export const ON_FAILURE = ['halt', 'revert'] as const;

export const RolloutErrorSchema = closed(
  {
    ...ErrorSchema.properties,
    hint: nullable(Type.String({ description: 'What helps, where the orchestrator knows it' })),
  },
  { description: 'Why it failed on this agent; null if it did not' },
);

const rolloutResult = {
  node_id: NodeId,
  name: AgentName,
  status: Type.Enum(ROLLOUT_STATUSES, {
    description: 'unreachable: the agent was offline; skipped: its apply never began',
  }),
  operation_id: nullable(ulidOf('Its operation; null for a plan, and without one')),
  summary: nullable(SummarySchema),
  error: nullable(RolloutErrorSchema),
};

export const RolloutResultSchema = closed(rolloutResult);
export type RolloutResult = Type.Static<typeof RolloutResultSchema>;

export const RolloutSchema = closed({
  assignment: nullable(Type.String({ description: 'Null for a rollout over a selector or named agents' })),
  selector: nullable(Type.String({ description: 'Null for a rollout over named agents' })),
  rollout_id: ulidOf('ID of the rollout'),
  has_changes: Type.Boolean({ description: 'True when something is to change, or has changed' }),
  results: Type.Array(RolloutResultSchema, { description: 'Result of each agent, in the order of the rollout' }),
  summary: closed(
    {
      agents: Type.Integer({ description: 'Agents of the rollout' }),
      succeeded: Type.Integer({ description: 'Agents that succeeded' }),
      failed: Type.Integer({ description: 'Agents that failed' }),
      unreachable: Type.Integer({ description: 'Agents that were offline' }),
      skipped: Type.Integer({ description: 'Agents that never began' }),
    },
    { description: 'Number of agents by their result' },
  ),
});
export type Rollout = Type.Static<typeof RolloutSchema>;

const countOf = (description: string) => Type.Integer({ minimum: 0, description });

/** A change of stored values during a rollout. */
export const ValueChangeSchema = closed({
  source: Type.Enum(['values', 'assignment'], { description: 'values: a value set; assignment: the values of one' }),
  name: Type.String({ description: 'Name of the value set or assignment' }),
  at: Seconds,
  by: Type.String({ description: 'Name of the operator' }),
});
export type ValueChange = Type.Static<typeof ValueChangeSchema>;

/** A rollout as it is stored, with the number of its agents in each state. */
export const RolloutRecordSchema = closed({
  rollout_id: ulidOf('ID of the rollout'),
  state: Type.Enum(ROLLOUT_STATES, { description: 'State of the rollout; paused and halted ones can be resumed' }),
  reason: nullable(Type.String({ description: 'Why it is paused, halted, failed or cancelled' })),
  assignment: nullable(Type.String({ description: 'Null for a rollout over a selector or named agents' })),
  selector: nullable(Type.String({ description: 'Null for a rollout over named agents' })),
  modules: Type.Array(Type.String(), { description: 'Modules beside those of the assignments' }),
  ...valueInputs,
  value_changes: optional(
    Type.Array(ValueChangeSchema, {
      description:
        'Value sets and assignments whose values have changed since the rollout began: agents that begin later get the new values; absent for none, and in lists',
    }),
  ),
  requested_by: Type.String({ description: 'operator_id' }),
  started_at: Seconds,
  finished_at: nullable(Seconds),
  pace: closed(
    {
      concurrency: Type.Integer({ description: 'Most agents at a time' }),
      canary: Type.Integer({ description: 'Number of agents that go first' }),
      waves: Type.Array(Type.Integer(), { description: 'Number of agents in each wave, the canaries first' }),
      soak_secs: Type.Integer({ description: 'Seconds between the last apply of a wave and its health checks' }),
      max_failures: nullable(
        Type.Integer({ description: 'Failures after which no other agent begins; null for no bound' }),
      ),
      on_failure: Type.Enum(ON_FAILURE, { description: 'What happens at the bound' }),
      skip_offline: Type.Boolean({ description: 'True when offline agents do not count as failures' }),
      expires_at: nullable(Type.Integer({ description: 'Unix time until which offline agents are waited for' })),
    },
    { description: 'How fast it goes, and what stops it' },
  ),
  wave: nullable(
    closed(
      {
        number: Type.Integer({ minimum: 1, description: 'Number of the wave, from 1' }),
        of: Type.Integer({ description: 'Number of waves' }),
        soaking_until: nullable(Type.Integer({ description: 'Unix time at which the soak of this wave ends' })),
      },
      { description: 'The present wave; null for an ended rollout' },
    ),
  ),
  counts: closed(
    {
      agents: countOf('All agents'),
      waiting: countOf('Agents that have not begun'),
      running: countOf('Agents in flight'),
      succeeded: countOf('Agents that succeeded'),
      failed: countOf('Agents that failed'),
      unreachable: countOf('Agents that were offline'),
      skipped: countOf('Agents that are left out'),
      reverted: countOf('Agents that have their earlier state again'),
    },
    { description: 'Number of agents in each state' },
  ),
});
export type RolloutRecord = Type.Static<typeof RolloutRecordSchema>;

export const RolloutAgentSchema = closed({
  node_id: NodeId,
  name: nullable(Type.String({ description: 'Name of the agent when the rollout began' })),
  wave: Type.Integer({ minimum: 1, description: 'Number of its wave, from 1' }),
  state: Type.Enum(ROLLOUT_AGENT_STATES, { description: 'State of the agent in the rollout' }),
  operation_id: nullable(ulidOf('Its newest operation; null before it begins')),
  summary: nullable(SummarySchema),
  error: nullable(RolloutErrorSchema),
});
export type RolloutAgent = Type.Static<typeof RolloutAgentSchema>;

export const RolloutDetailSchema = closed({
  ...RolloutRecordSchema.properties,
  values: optional(OneOffValuesSchema),
  agents: Type.Array(RolloutAgentSchema, { description: 'In the order of the rollout' }),
});
export type RolloutDetail = Type.Static<typeof RolloutDetailSchema>;

export const ROLLOUT_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

const { module, kind, identity, action, status } = ResourceResultSchema.properties;

/** One line of the stream of a rollout. */
export const RolloutEventSchema = Type.Union([
  closed({
    event: Type.Literal('started', { description: 'The first line' }),
    rollout_id: ulidOf('ID of the rollout'),
    agents: Type.Integer({ description: 'Number of its agents' }),
  }),
  closed({
    event: Type.Literal('resource', { description: 'A resource of an agent has its result' }),
    node_id: NodeId,
    name: AgentName,
    resource: closed({ module, kind, identity, action, status }, { description: 'The result in short' }),
  }),
  closed({
    event: Type.Literal('agent', { description: 'An agent has ended' }),
    agent: closed({ ...rolloutResult, result: nullable(RunResultSchema) }, { description: 'Its result' }),
  }),
  closed({
    event: Type.Literal('rollout', { description: 'The rollout has another state' }),
    rollout: RolloutRecordSchema,
  }),
  closed({ event: Type.Literal('result', { description: 'The last line of a rollout' }), result: RolloutSchema }),
  closed({
    event: Type.Literal('error', { description: 'The last line after a failure' }),
    error: Type.Record(Type.String(), Type.Unknown(), { description: 'Problem document' }),
  }),
]);
export type RolloutEvent = Type.Static<typeof RolloutEventSchema>;

/** Maximum number of agents that one request names. A selector has no such limit. */
export const ROLLOUT_AGENTS = 10_000;

/** Body limits of a plan: the modules of a plan of one agent, and `ROLLOUT_AGENTS` node IDs. */
export const PLAN_ROLLOUT_LIMITS = { bodyBytes: PLAN_BODY_BYTES + 512 * 1024 } as const;

/** Body limits of an apply: the modules of an apply of one agent, and `ROLLOUT_AGENTS` node IDs with the hashes of their plans. */
export const APPLY_ROLLOUT_LIMITS = {
  bodyBytes: PLAN_BODY_BYTES + 4 * 1024 * 1024,
  bodyMembers: ROLLOUT_AGENTS + 1000,
} as const;

/** A number of agents, or a percentage of the rollout's agents. */
const shareOf = (minimum: number, description: string) =>
  Type.Union([Type.Integer({ minimum }), Type.String({ pattern: '^(?:100|[1-9]?[0-9])%$' })], { description });

const rolloutBody = {
  ...oneOffBody,
  concurrency: optional(
    shareOf(
      1,
      `Most agents at a time, or a percentage such as \`"10%"\`; default ${ROLLOUT_CONCURRENCY.standard}, maximum ${ROLLOUT_CONCURRENCY.maximum}. With a bound the rollout starts with one, and each success makes room for one more`,
    ),
  ),
  canary: optional(
    shareOf(0, 'Number or percentage of agents that go first; the others start after all of them succeed'),
  ),
  max_failures: optional(
    shareOf(
      1,
      'Number or percentage of failed agents after which no other agent starts; never more are in flight than may still fail',
    ),
  ),
  modules: optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
      maxItems: 1000,
      description: 'Modules beside those of the assignments',
    }),
  ),
  progress: optional(
    Type.Boolean({
      description:
        'true adds a `resource` line to the stream for each resource; lines that the client is too slow for are left out',
    }),
  ),
};

/** Members of a request that plans a rollout, except those that choose the agents. */
export const planRolloutBody = { ...rolloutBody, sources: optional(SourcesSchema) };

/** Members of a request that applies a rollout, except those that choose the agents. */
export const applyRolloutBody = {
  ...rolloutBody,
  ...applyLimitsBody,
  sources: optional(AppliedSourcesSchema),
  expect: optional(
    Type.Record(Type.String(), nullable(Type.String({ pattern: PLAN_HASH })), {
      maxProperties: ROLLOUT_AGENTS,
      description:
        'plan_hash by node_id: apply to these agents alone, and only what those plans showed; null for an agent without a plan',
    }),
  ),
  wait: optional(Type.Boolean({ description: 'false answers 202 with the rollout at once' })),
  waves: optional(
    Type.Array(shareOf(1, 'Agents that have been started when the wave ends'), {
      maxItems: 100,
      description: 'Cumulative numbers or percentages of agents, ascending, such as `[1, "10%", "100%"]`',
    }),
  ),
  soak_secs: optional(
    Type.Integer({
      minimum: 0,
      maximum: 604_800,
      description: 'Time between the last apply of a wave and its health checks, after which the next wave starts',
    }),
  ),
  on_failure: optional(
    Type.Enum(ON_FAILURE, {
      description: 'What happens when a bound is reached or a health check fails; default halt',
    }),
  ),
  skip_offline: optional(Type.Boolean({ description: 'Offline agents are skipped and do not count as failures' })),
  when_online_secs: optional(
    Type.Integer({
      minimum: 1,
      maximum: 2_592_000,
      description: 'How long offline agents are waited for; they are applied when they return',
    }),
  ),
};

const ONE_OF = 'Either `selector` or `agents` chooses the agents';

const chosenAgents = {
  selector: optional(Type.String({ maxLength: 4096, description: `All approved agents that match now. ${ONE_OF}` })),
  agents: optional(
    Type.Array(KeyId, { minItems: 1, maxItems: ROLLOUT_AGENTS, description: `node_id of each. ${ONE_OF}` }),
  ),
};

const rolloutParams = closed({ rollout_id: pathId('ID of the rollout') });

export const rolloutRoutes = {
  listRollouts: route({
    id: 'listRollouts',
    summary: 'Rollouts that apply, most recent first',
    tag: 'rollouts',
    method: 'GET',
    path: '/rollouts',
    access: 'read',
    grants: 'filtered',
    query: closed({
      limit: optional(limitOf(ROLLOUT_LIST_LIMIT.standard, ROLLOUT_LIST_LIMIT.maximum)),
      offset: Offset,
      state: optional(Type.Enum(ROLLOUT_STATES, { description: 'Only rollouts in this state' })),
      assignment: optional(Type.String({ description: 'Only rollouts of the assignment with this name' })),
    }),
    answers: {
      200: closed({
        rollouts: Type.Array(RolloutRecordSchema, { description: 'Rollouts of this page, most recent first' }),
        ...pageMembers,
      }),
    },
    headers: NEXT_PAGE,
    faults: [],
  }),
  getRollout: route({
    id: 'getRollout',
    summary: 'One rollout with its agents; a stream replays it and follows it until it ends or halts',
    tag: 'rollouts',
    method: 'GET',
    path: '/rollouts/{rollout_id}',
    access: 'read',
    grants: 'filtered',
    params: rolloutParams,
    query: closed({
      progress: optional(Type.Boolean({ description: 'true adds a `resource` line for each resource' })),
    }),
    answers: { 200: RolloutDetailSchema },
    stream: RolloutEventSchema,
    faults: ['rollout_not_found'],
  }),
  pauseRollout: route({
    id: 'pauseRollout',
    summary: 'Start no other agent until the rollout is resumed; agents in flight finish',
    tag: 'rollouts',
    method: 'POST',
    path: '/rollouts/{rollout_id}/pause',
    access: 'cancel',
    grants: 'filtered',
    params: rolloutParams,
    body: closed({ reason: optional(Type.String({ maxLength: 1024, description: 'Why, for people' })) }),
    bodyOptional: true,
    answers: { 200: RolloutRecordSchema },
    faults: ['rollout_not_found', 'rollout_finished', 'rollout_in_progress'],
  }),
  resumeRollout: route({
    id: 'resumeRollout',
    summary: 'Continue a paused or halted rollout; failures so far no longer count against its bounds',
    tag: 'rollouts',
    method: 'POST',
    path: '/rollouts/{rollout_id}/resume',
    access: 'apply',
    grants: 'filtered',
    params: rolloutParams,
    answers: { 200: RolloutRecordSchema },
    faults: ['rollout_not_found', 'rollout_finished'],
  }),
  retryRollout: route({
    id: 'retryRollout',
    summary: 'Apply again to the failed, unreachable and skipped agents of an ended or halted rollout',
    tag: 'rollouts',
    method: 'POST',
    path: '/rollouts/{rollout_id}/retry',
    access: 'apply',
    grants: 'filtered',
    params: rolloutParams,
    answers: { 200: RolloutRecordSchema },
    faults: ['rollout_not_found', 'rollout_finished', 'rollout_in_progress'],
  }),
  planRollout: route({
    id: 'planRollout',
    summary: 'Plan an apply on every agent that a selector matches now, or on named agents; writes nothing',
    tag: 'rollouts',
    method: 'POST',
    path: '/rollouts/plan',
    access: 'plan',
    grants: 'filtered',
    body: closed({ ...chosenAgents, ...planRolloutBody }),
    ...PLAN_ROLLOUT_LIMITS,
    answers: { 200: RolloutSchema },
    stream: RolloutEventSchema,
    faults: [
      'invalid_selector',
      'agent_not_found',
      'module_not_found',
      'invalid_module',
      'invalid_values',
      'file_not_found',
      'rate_limited',
    ],
  }),
  applyRollout: route({
    id: 'applyRollout',
    summary: 'Apply modules to every agent that a selector matches now, or to named agents',
    tag: 'rollouts',
    method: 'POST',
    path: '/rollouts/apply',
    access: 'apply',
    grants: 'filtered',
    body: closed({ ...chosenAgents, ...applyRolloutBody }),
    ...APPLY_ROLLOUT_LIMITS,
    location: '/rollouts/{rollout_id}',
    answers: { 200: RolloutSchema, 202: RolloutSchema },
    stream: RolloutEventSchema,
    faults: [
      'invalid_selector',
      'agent_not_found',
      'module_not_found',
      'invalid_module',
      'invalid_values',
      'file_not_found',
      'rate_limited',
    ],
  }),
  cancelRollout: route({
    id: 'cancelRollout',
    summary: 'Stop a rollout: start no other agent, and cancel its running operations at the next resource boundary',
    tag: 'rollouts',
    method: 'POST',
    path: '/rollouts/{rollout_id}/cancel',
    access: 'cancel',
    grants: 'filtered',
    params: rolloutParams,
    location: '/rollouts/{rollout_id}',
    answers: {
      202: closed({
        rollout_id: ulidOf('ID of the rollout'),
        cancelled: Type.Array(Ulid, { description: 'operation_id of each' }),
      }),
    },
    faults: ['rollout_not_found', 'rollout_finished', 'rollout_in_progress'],
  }),
} as const;
