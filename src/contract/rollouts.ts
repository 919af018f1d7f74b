/** Rollouts: plan and apply on many agents, chosen by a selector, by their node IDs, or by an assignment. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { ErrorSchema, ResourceResultSchema, SummarySchema } from '../resources/result.js';
import { ROLLOUT_CONCURRENCY } from './rollout-concurrency.js';
import { route } from './route.js';
import { PLAN_BODY_BYTES, PLAN_HASH, RunResultSchema, SourcesSchema } from './runs.js';
import { KeyId, Ulid } from './shapes.js';

const ROLLOUT_STATUSES = ['succeeded', 'failed', 'unreachable', 'skipped'] as const;

const rolloutResult = {
  node_id: KeyId,
  name: nullable(Type.String()),
  status: Type.Enum(ROLLOUT_STATUSES),
  operation_id: nullable(Ulid),
  summary: nullable(SummarySchema),
  error: nullable(
    closed({
      ...ErrorSchema.properties,
      hint: nullable(Type.String({ description: 'What helps, where the orchestrator knows it' })),
    }),
  ),
};

export const RolloutResultSchema = closed(rolloutResult);
export type RolloutResult = Type.Static<typeof RolloutResultSchema>;

export const RolloutSchema = closed({
  assignment: nullable(Type.String({ description: 'Null for a rollout over a selector or named agents' })),
  selector: nullable(Type.String({ description: 'Null for a rollout over named agents' })),
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

const { module, kind, identity, action, status } = ResourceResultSchema.properties;

/** One line of the stream of a rollout. */
export const RolloutEventSchema = Type.Union([
  closed({ event: Type.Literal('started'), rollout_id: Ulid, agents: Type.Integer() }),
  closed({
    event: Type.Literal('resource'),
    node_id: KeyId,
    name: nullable(Type.String()),
    resource: closed({ module, kind, identity, action, status }),
  }),
  closed({ event: Type.Literal('agent'), agent: closed({ ...rolloutResult, result: nullable(RunResultSchema) }) }),
  closed({ event: Type.Literal('result'), result: RolloutSchema }),
  closed({ event: Type.Literal('error'), error: Type.Record(Type.String(), Type.Unknown()) }),
]);
export type RolloutEvent = Type.Static<typeof RolloutEventSchema>;

/** Maximum number of agents that one request names. A selector has no such limit. */
export const ROLLOUT_AGENTS = 10_000;

/** Body limits of a plan: the modules of a plan of one agent, and `ROLLOUT_AGENTS` node IDs. */
export const PLAN_ROLLOUT_LIMITS = { bodyBytes: PLAN_BODY_BYTES + 512 * 1024 } as const;

/** Body limits of an apply: `ROLLOUT_AGENTS` node IDs with the hashes of their plans. */
export const APPLY_ROLLOUT_LIMITS = { bodyBytes: 4 * 1024 * 1024, bodyMembers: ROLLOUT_AGENTS + 1000 } as const;

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
  allow_removals: optional(
    Type.Integer({ minimum: 0, description: 'Maximum removals on each agent, in place of the removal guard' }),
  ),
  expect: optional(
    Type.Record(Type.String(), Type.String({ pattern: PLAN_HASH }), {
      maxProperties: ROLLOUT_AGENTS,
      description: 'plan_hash by node_id: apply to these agents alone, and only what those plans showed',
    }),
  ),
  wait: optional(Type.Boolean({ description: 'false answers 202 with the rollout at once' })),
};

const ONE_OF = 'Either `selector` or `agents` chooses the agents';

const chosenAgents = {
  selector: optional(Type.String({ maxLength: 4096, description: `All approved agents that match now. ${ONE_OF}` })),
  agents: optional(
    Type.Array(KeyId, { minItems: 1, maxItems: ROLLOUT_AGENTS, description: `node_id of each. ${ONE_OF}` }),
  ),
};

export const rolloutRoutes = {
  planRollout: route({
    id: 'planRollout',
    summary: 'Plan an apply on every agent that a selector matches now, or on named agents; writes nothing',
    tag: 'rollouts',
    method: 'POST',
    path: '/rollouts/plan',
    access: 'operator',
    body: closed({ ...chosenAgents, ...planRolloutBody }),
    ...PLAN_ROLLOUT_LIMITS,
    answers: { 200: RolloutSchema },
    stream: RolloutEventSchema,
    faults: ['invalid_selector', 'agent_not_found', 'module_not_found', 'invalid_module', 'rate_limited'],
  }),
  applyRollout: route({
    id: 'applyRollout',
    summary: 'Apply modules to every agent that a selector matches now, or to named agents',
    tag: 'rollouts',
    method: 'POST',
    path: '/rollouts/apply',
    access: 'operator',
    body: closed({ ...chosenAgents, ...applyRolloutBody }),
    ...APPLY_ROLLOUT_LIMITS,
    answers: { 200: RolloutSchema, 202: RolloutSchema },
    stream: RolloutEventSchema,
    faults: ['invalid_selector', 'agent_not_found', 'module_not_found'],
  }),
  cancelRollout: route({
    id: 'cancelRollout',
    summary: 'Stop a rollout: start no other agent, and cancel its running operations at the next resource boundary',
    tag: 'rollouts',
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
