/** Plan, apply and drift of one agent. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { CheckResultSchema } from '../resources/checks/check.js';
import { CONFIRM_SECS, RestoredSchema } from '../resources/restored.js';
import { ErrorSchema, ResourceResultSchema, SummarySchema } from '../resources/result.js';
import { ModuleFilesSchema } from './files.js';
import { WarningSchema } from './modules.js';
import { oneOffBody, valueInputs } from './one-off-values.js';
import { route } from './route.js';
import { NOTHING, REPLACES } from './run-targets.js';
import { Cursor, limitOf, NEXT_PAGE, NodeId, NodeParams, pathId, Seconds, Ulid, ulidOf } from './shapes.js';
import { SOURCE_STATUSES } from './source-statuses.js';

export const RunStatusSchema = Type.Enum(
  ['queued', 'running', 'succeeded', 'failed', 'interrupted', 'cancelled', 'rolled_back'],
  {
    description:
      'queued and running: in flight; rolled_back: the agent has undone it; interrupted: its end is not known',
  },
);

/** Members of an apply that may be undone. */
export const undoing = {
  confirm_secs: optional(
    Type.Integer({ description: 'Seconds in which the machine had to come back; absent without a confirmation' }),
  ),
  restored: optional({ ...RestoredSchema, description: 'What the agent has undone; absent for an apply that stands' }),
};

/** Members of the requests that apply: limits on each apply. */
export const applyLimitsBody = {
  allow_removals: optional(
    Type.Integer({ minimum: 0, description: 'Maximum removals on each agent, in place of the removal guard' }),
  ),
  outside_window: optional(
    Type.Boolean({ description: 'true applies also outside the maintenance windows of assignments' }),
  ),
  confirm_secs: optional(
    Type.Integer({
      ...CONFIRM_SECS,
      description:
        'The agent undoes the apply unless it succeeds and the agent comes back on a new connection within so many seconds after it; the shortest of this and the `confirm` of the modules counts',
    }),
  ),
};
export type ApplyLimitsBody = Type.Static<Type.TObject<typeof applyLimitsBody>>;

/** Member of an apply that carried modules as text. */
export const settledSources = {
  sources: optional(
    Type.Array(
      closed({
        module: Type.String({ description: 'Name of the module' }),
        sha256: Type.String({ description: 'SHA-256 of its text' }),
        status: Type.Enum(SOURCE_STATUSES, {
          description:
            'on_trial: it is on trial on the agent and not published; published: the apply has published it, because every other agent that follows it has it; unchanged: it equals the stored revision',
        }),
        others: Type.Integer({
          description: 'Number of other agents that followed the module at the end of the apply',
        }),
      }),
      { description: 'Modules that came with the apply as text, once it has changed the machine' },
    ),
  ),
};

/** Health checks of a run; absent when it has none. */
export const ChecksSchema = Type.Optional(
  Type.Array(CheckResultSchema, { description: 'Health checks of the modules; absent without any' }),
);
/** Origin of a desired state that no module of today gives. */
export const RestoresSchema = Type.String({
  description: `operation_id of the earlier operation whose desired state this is, or \`${NOTHING}\`; absent for modules`,
});

/** The answer to plan and apply. */
export const RunResultSchema = closed({
  operation_id: nullable(ulidOf('ID of the operation; null for a plan')),
  node_id: NodeId,
  status: RunStatusSchema,
  has_changes: Type.Boolean({ description: 'True when something is to change, or has changed' }),
  modules: Type.Array(Type.String(), { description: 'Names of the modules' }),
  started_at: Seconds,
  finished_at: nullable(Seconds),
  summary: SummarySchema,
  resources: Type.Array(ResourceResultSchema, { description: 'Result of each resource, in the order of the run' }),
  checks: ChecksSchema,
  warnings: Type.Array(
    closed({ ...WarningSchema.properties, module: Type.String({ description: 'Name of the module' }) }),
    {
      description: 'Warnings about the texts of the modules',
    },
  ),
  plan_hash: nullable(
    Type.String({ description: 'Hash of a plan, which an apply takes as `expect`; null for an apply' }),
  ),
  error: nullable(ErrorSchema),
  restores: optional(RestoresSchema),
  notes: optional(
    Type.Array(Type.String(), {
      description:
        'Remarks about the desired state of an earlier operation, and about removals that changed facts cause',
    }),
  ),
  ...settledSources,
  ...valueInputs,
  refusals: optional(
    Type.Array(
      closed({
        ...ErrorSchema.properties,
        hint: nullable(Type.String({ description: 'What helps; null without advice' })),
        allow_removals: Type.Optional(
          Type.Integer({ description: 'For `removal_guard`: the `allow_removals` with which the apply is accepted' }),
        ),
      }),
      {
        description: 'Of a plan: why an apply of it without `allow_removals` and `outside_window` would be refused now',
      },
    ),
  ),
  ends_trial: optional(
    Type.Array(Type.String(), { description: 'Modules whose trial on the agent the apply ends, or would end' }),
  ),
  ...undoing,
});
export type RunResult = Type.Static<typeof RunResultSchema>;

/** The answer to `verifyAgent`. */
export const VerificationSchema = closed({
  node_id: NodeId,
  operation_id: Type.String({ description: 'The apply whose health checks ran' }),
  ok: Type.Boolean({ description: 'True when every check is healthy, also without checks' }),
  started_at: Seconds,
  finished_at: Seconds,
  checks: Type.Array(CheckResultSchema, { description: 'Result of each health check' }),
  error: nullable(ErrorSchema),
});
export type Verification = Type.Static<typeof VerificationSchema>;

export const PLAN_HASH = '^[0-9a-f]{64}\\.[0-9a-f]{64}$';

const runBody = {
  modules: Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { maxItems: 1000, description: 'Module names' }),
};

/** The earlier operation of a plan or an apply, in place of modules. */
const toBody = {
  to: optional({
    ...Ulid,
    description:
      'operation_id of an earlier operation of this agent: its desired state, with the present values of secrets, in place of modules',
  }),
};

/** Maximum bytes of a plan request with modules as text, enough for all modules of one run. */
export const PLAN_BODY_BYTES = 8 * 1024 * 1024;

const sourceMembers = {
  name: Type.String({ description: 'Name of the module' }),
  content: Type.String({ description: 'YAML; its name must equal `name`' }),
  files: optional(ModuleFilesSchema),
};

/** Modules as text in a plan request. */
export const SourcesSchema = Type.Array(closed(sourceMembers), {
  maxItems: 1000,
  description:
    'Modules as text, for this plan alone: each counts as named, after `modules`, and takes the place of the stored module of its name. Nothing is stored',
});

/** Modules as text in a request that applies. */
export const AppliedSourcesSchema = Type.Array(
  closed({
    ...sourceMembers,
    replaces: optional(
      Type.String({
        pattern: REPLACES,
        description:
          'SHA-256 of the stored revision that the text was made from, or `none` without one: another stored revision is never replaced. Absent: the one that is stored at the request',
      }),
    ),
  }),
  {
    maxItems: 1000,
    description:
      'Modules as text, for these agents alone: each counts as named, after `modules`, and takes the place of the stored module of its name. It is published if no other agent follows the module; otherwise the agent is on trial until it is published, or until an apply without it',
  },
);

/** One line of the stream of a plan or an apply. */
export const RunEventSchema = Type.Union([
  closed({
    event: Type.Literal('started', { description: 'The first line' }),
    operation_id: nullable(ulidOf('ID of the operation; null for a plan')),
  }),
  closed({
    event: Type.Literal('resource', { description: 'A resource has its result' }),
    resource: ResourceResultSchema,
  }),
  closed({
    event: Type.Literal('awaiting', {
      description: 'Everything is applied, and the agent has to come back on a new connection',
    }),
    left_secs: Type.Integer({ minimum: 0, description: 'Seconds until the agent undoes the apply' }),
  }),
  closed({ event: Type.Literal('result', { description: 'The last line of a run' }), result: RunResultSchema }),
  closed({
    event: Type.Literal('error', { description: 'The last line after a failure' }),
    error: Type.Record(Type.String(), Type.Unknown(), { description: 'Problem document' }),
  }),
]);
export type RunEvent = Type.Static<typeof RunEventSchema>;

export const DRIFT_STATUSES = ['drifted', 'in_sync', 'failed', 'cancelled'] as const;

const LIKELY_CAUSE_KINDS = ['terminal', 'command', 'apply'] as const;

/** Something that ran on the machine when the resource was changed. */
const LikelyCauseSchema = closed({
  kind: Type.Enum(LIKELY_CAUSE_KINDS, { description: 'What ran: a terminal, a command of an operator, or an apply' }),
  id: Type.String({ description: 'session_id or operation_id' }),
  by: Type.String({ description: 'Username, or operator_id for an apply' }),
  started_at: Seconds,
  ended_at: nullable(Seconds),
  offset_secs: nullable(
    Type.Integer({ description: 'Place of the change in the recording of a terminal session; null without one' }),
  ),
});
export type LikelyCause = Type.Static<typeof LikelyCauseSchema>;

const DriftExcuseSchema = closed({
  kind: Type.Enum(['snoozed', 'accepted'], { description: 'Why it does not count' }),
  by: Type.String({ description: 'operator_id' }),
  reason: nullable(Type.String({ description: 'Why, for people; null without a reason' })),
  until: nullable(Type.Integer({ description: 'End of the snooze; null for accepted drift' })),
});
export type DriftExcuse = Type.Static<typeof DriftExcuseSchema>;

/** A resource in a drift record. */
export const DriftResourceSchema = closed({
  ...ResourceResultSchema.properties,
  excuse: optional({ ...DriftExcuseSchema, description: 'Why this difference did not count; absent: it counted' }),
  changed_at: optional({
    ...Seconds,
    description: 'Last change of the file, as far as the machine tells; by the clock of the orchestrator',
  }),
  likely_causes: optional(
    Type.Array(LikelyCauseSchema, {
      description: 'What ran on the machine at `changed_at`, latest first; not proved to be the cause',
    }),
  ),
});
export type DriftResource = Type.Static<typeof DriftResourceSchema>;

export const DriftRecordSchema = closed({
  drift_id: ulidOf('ID of the record'),
  node_id: NodeId,
  status: Type.Enum(DRIFT_STATUSES, {
    description: 'drifted: the machine differs from its last apply; in_sync: it does not',
  }),
  trigger: Type.Enum(['manual', 'scheduled'], { description: 'manual: an operator asked for the check' }),
  requested_by: nullable(Type.String({ description: 'operator_id; null for a scheduled check' })),
  operation_id: ulidOf('The apply that the machine is compared with'),
  started_at: Seconds,
  finished_at: Seconds,
  has_changes: Type.Boolean({ description: 'True when something differs and counts' }),
  summary: SummarySchema,
  snoozed: Type.Integer({ description: 'Number of different resources that were snoozed' }),
  accepted: Type.Integer({ description: 'Number of different resources whose drift was accepted' }),
  error: nullable(ErrorSchema),
});
export type DriftRecord = Type.Static<typeof DriftRecordSchema>;

export const DriftDetailSchema = closed({
  ...DriftRecordSchema.properties,
  resources: Type.Array(DriftResourceSchema, { description: 'Result of each resource' }),
});
export type DriftDetail = Type.Static<typeof DriftDetailSchema>;

export const DRIFT_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

const RESOLUTION_FAULTS = [
  'module_not_found',
  'module_not_supported',
  'module_conflict',
  'input_missing',
  'input_invalid',
  'variant_ambiguous',
  'variant_missing',
  'secret_unavailable',
  'expression_error',
] as const;
/** Faults of `to`. */
const EARLIER_FAULTS = ['operation_not_found', 'operation_unsuitable'] as const;
const DISPATCH_FAULTS = ['agent_not_found', 'agent_not_approved', 'agent_not_connected', 'agent_timeout'] as const;

export const runRoutes = {
  planAgent: route({
    id: 'planAgent',
    summary: 'Plan an apply on the agent; writes nothing',
    tag: 'runs',
    method: 'POST',
    path: '/agents/{node_id}/plan',
    access: 'plan',
    params: NodeParams,
    body: closed({ ...runBody, ...toBody, ...oneOffBody, sources: optional(SourcesSchema) }),
    bodyBytes: PLAN_BODY_BYTES,
    answers: { 200: RunResultSchema },
    stream: RunEventSchema,
    faults: [
      ...DISPATCH_FAULTS,
      ...RESOLUTION_FAULTS,
      'invalid_module',
      'invalid_values',
      'file_not_found',
      'rate_limited',
      'operation_in_progress',
      'cancelled',
      ...EARLIER_FAULTS,
    ],
  }),
  applyAgent: route({
    id: 'applyAgent',
    summary: 'Apply modules to the agent',
    tag: 'runs',
    method: 'POST',
    path: '/agents/{node_id}/apply',
    access: 'apply',
    params: NodeParams,
    body: closed({
      ...runBody,
      ...toBody,
      ...oneOffBody,
      ...applyLimitsBody,
      sources: optional(AppliedSourcesSchema),
      expect: optional(
        Type.String({ pattern: PLAN_HASH, description: 'plan_hash of a plan: apply only what it showed' }),
      ),
      wait: optional(Type.Boolean({ description: 'false answers 202 with the running operation at once' })),
    }),
    bodyBytes: PLAN_BODY_BYTES,
    location: '/state/operations/{operation_id}',
    answers: { 200: RunResultSchema, 202: RunResultSchema },
    stream: RunEventSchema,
    faults: [
      ...DISPATCH_FAULTS,
      ...RESOLUTION_FAULTS,
      'invalid_module',
      'invalid_values',
      'file_not_found',
      'rate_limited',
      'agent_too_old',
      'operation_in_progress',
      'outside_window',
      'removal_guard',
      'plan_stale',
      ...EARLIER_FAULTS,
    ],
  }),
  verifyAgent: route({
    id: 'verifyAgent',
    summary: 'Run the health checks of the last applied modules again; changes nothing',
    tag: 'runs',
    method: 'POST',
    path: '/agents/{node_id}/verify',
    access: 'verify',
    params: NodeParams,
    answers: { 200: VerificationSchema },
    faults: [
      ...DISPATCH_FAULTS,
      'agent_too_old',
      'operation_in_progress',
      'no_snapshot',
      'secret_unavailable',
      'cancelled',
    ],
  }),
  checkDrift: route({
    id: 'checkDrift',
    summary: 'Compare the agent with its last successful apply',
    tag: 'drift',
    method: 'POST',
    path: '/agents/{node_id}/drift',
    access: 'verify',
    params: NodeParams,
    answers: { 200: DriftDetailSchema },
    faults: [...DISPATCH_FAULTS, 'no_snapshot', 'operation_in_progress'],
  }),
  listAgentDrift: route({
    id: 'listAgentDrift',
    summary: 'Drift records of an agent, newest first; a Link header names the next page',
    tag: 'drift',
    method: 'GET',
    path: '/agents/{node_id}/drift',
    access: 'read',
    params: NodeParams,
    query: closed({
      limit: optional(limitOf(DRIFT_LIST_LIMIT.standard, DRIFT_LIST_LIMIT.maximum)),
      status: optional(Type.Enum(DRIFT_STATUSES, { description: 'Only records with this status' })),
      cursor: Cursor,
    }),
    answers: {
      200: closed({ records: Type.Array(DriftRecordSchema, { description: 'Records of this page, newest first' }) }),
    },
    headers: NEXT_PAGE,
    faults: ['agent_not_found'],
  }),
  getLatestDrift: route({
    id: 'getLatestDrift',
    summary: 'The most recent drift record of an agent, or null',
    tag: 'drift',
    method: 'GET',
    path: '/agents/{node_id}/drift/latest',
    access: 'read',
    params: NodeParams,
    answers: { 200: nullable(DriftDetailSchema) },
    faults: ['agent_not_found'],
  }),
  listDrift: route({
    id: 'listDrift',
    summary: 'Drift records of all agents, newest first; a Link header names the next page',
    tag: 'drift',
    method: 'GET',
    path: '/drift',
    access: 'read',
    grants: 'filtered',
    query: closed({
      limit: optional(limitOf(DRIFT_LIST_LIMIT.standard, DRIFT_LIST_LIMIT.maximum)),
      status: optional(Type.Enum(DRIFT_STATUSES, { description: 'Only records with this status' })),
      filter: optional(Type.String({ description: 'Selector: only of approved agents that match' })),
      cursor: Cursor,
    }),
    answers: {
      200: closed({ records: Type.Array(DriftRecordSchema, { description: 'Records of this page, newest first' }) }),
    },
    headers: NEXT_PAGE,
    faults: ['invalid_selector'],
  }),
  getDrift: route({
    id: 'getDrift',
    summary: 'One drift record with its resources',
    tag: 'drift',
    method: 'GET',
    path: '/drift/{drift_id}',
    access: 'read',
    grants: 'filtered',
    params: closed({ drift_id: pathId('ID of the record') }),
    answers: { 200: DriftDetailSchema },
    faults: ['drift_not_found'],
  }),
} as const;
