/** Value sets: values of inputs of modules, for the agents that a clause matches. */
import * as Type from 'typebox';
import { ASSIGNMENT_MODES } from '../kernel/assignment-modes.js';
import { closed, nullable, optional } from '../kernel/schema.js';
import { WarningSchema } from './modules.js';
import { ownValues } from './one-off-values.js';
import { route } from './route.js';
import { REPLACES } from './run-targets.js';
import { AgentName, NodeId, NodeParams, pathName, Seconds, ulidOf } from './shapes.js';

const ValueSetEntrySchema = closed({
  name: Type.String({ description: 'Name of its file without .values.yaml' }),
  revision: Type.Integer({ minimum: 1, description: 'Number of the revision, from 1' }),
  sha256: Type.String({ description: 'SHA-256 of the text' }),
  uploaded_at: Seconds,
  uploaded_by: Type.String({ description: 'operator_id' }),
  modules: Type.Array(Type.String(), { description: 'Modules whose inputs it sets, by name' }),
});
export type ValueSetEntry = Type.Static<typeof ValueSetEntrySchema>;

export const ValueSetSchema = closed({
  ...ValueSetEntrySchema.properties,
  content: Type.String({ description: 'The uploaded YAML text' }),
});
export type StoredValueSet = Type.Static<typeof ValueSetSchema>;

const ValueSetRevisionSchema = closed({
  name: Type.String({ description: 'Name of the value set' }),
  revision: Type.Integer({ minimum: 1, description: 'Number of the revision, from 1' }),
  sha256: nullable(Type.String({ description: 'Null for the removal of the value set' })),
  uploaded_at: Seconds,
  uploaded_by: Type.String({ description: 'operator_id' }),
});
export type ValueSetRevisionEntry = Type.Static<typeof ValueSetRevisionSchema>;

/** An approved agent whose values a change of a value set changes. */
const ReachedAgentSchema = closed({
  node_id: NodeId,
  name: AgentName,
  mode: nullable(
    Type.Enum(ASSIGNMENT_MODES, {
      description: 'Strongest mode of the assignments that give it the modules; null if only a request gave them',
    }),
  ),
  on_trial: Type.Boolean({ description: 'True for an agent on trial, which automatic applies leave alone' }),
  ...ownValues,
  modules: Type.Array(Type.String(), { description: 'Modules of the agent whose values change' }),
  problem: nullable(Type.String({ description: 'Why its values are wrong after the change; null if they are not' })),
});
export type ReachedAgent = Type.Static<typeof ReachedAgentSchema>;

const reached = Type.Array(ReachedAgentSchema, {
  description: 'Approved agents whose values change, by name; those with the mode enforce get an apply at once',
});

const params = closed({ name: pathName('Name of the value set') });
const content = Type.String({ description: 'YAML of a value set' });

const CandidateSchema = closed({
  value: Type.Unknown({ description: 'As it is written' }),
  from: Type.String({ description: 'Document and line, such as prod.values.yaml:12' }),
  when: Type.Record(Type.String(), Type.String(), { description: 'Clause of the entry' }),
  used: Type.Boolean({ description: 'True if the value comes from it, at least in part' }),
});

const ExplainedInputSchema = closed({
  name: Type.String({ description: 'Name of the input' }),
  value: Type.Unknown({ description: 'Null for an input without a value, or with a wrong one' }),
  is_default: Type.Boolean({ description: 'True if the value is the default of the module' }),
  candidates: Type.Array(CandidateSchema, {
    description: 'Values that were given for the input, from the most general to the most specific',
  }),
  problem: nullable(Type.String({ description: 'Why the input has no value that can be used; null if it has' })),
  applied: optional(
    closed(
      {
        value: Type.Unknown({ description: 'The value' }),
        from: Type.String({ description: 'Where the request gave it: `--set`, or document and line' }),
        operation_id: ulidOf('The apply that brought it'),
      },
      {
        description:
          'Value that the last apply of the agent brought with it, as it is written: the agent has it until an apply without it; absent for none',
      },
    ),
  ),
});
export type ExplainedInput = Type.Static<typeof ExplainedInputSchema>;

const ExplainedModuleSchema = closed({
  module: Type.String({ description: 'Name of the module' }),
  inputs: Type.Array(ExplainedInputSchema, { description: 'Inputs of the module, in its order' }),
});
export type ExplainedModule = Type.Static<typeof ExplainedModuleSchema>;

export const valueRoutes = {
  listValueSets: route({
    id: 'listValueSets',
    summary: 'List value sets by name',
    tag: 'values',
    method: 'GET',
    path: '/values',
    access: 'read',
    grants: 'shared',
    answers: { 200: Type.Array(ValueSetEntrySchema) },
    faults: [],
  }),
  uploadValueSet: route({
    id: 'uploadValueSet',
    summary: 'Upload a value set; an existing name gets a new revision, which reaches its agents',
    tag: 'values',
    method: 'POST',
    path: '/values',
    access: 'values',
    grants: 'filtered',
    body: closed({
      name: Type.String({ description: 'Name of the value set' }),
      content,
      replaces: optional(
        Type.String({
          pattern: REPLACES,
          description:
            'SHA-256 of the revision that the new one replaces, or `none` for a new value set; another current revision is an error. Absent: whatever is current',
        }),
      ),
    }),
    location: '/values/{name}',
    answers: {
      201: closed({
        ...ValueSetEntrySchema.properties,
        changed: Type.Boolean({
          description: 'false when the text equals the current revision, so that no new one is stored',
        }),
        warnings: Type.Array(WarningSchema, { description: 'Warnings about the text' }),
        agents: reached,
      }),
    },
    faults: ['invalid_name', 'invalid_values', 'values_conflict', 'rate_limited', 'precondition_failed'],
  }),
  previewValueSet: route({
    id: 'previewValueSet',
    summary: 'Whom an upload of a value set would reach, or its removal; stores nothing',
    tag: 'values',
    method: 'POST',
    path: '/values/{name}/preview',
    access: 'values',
    grants: 'filtered',
    params,
    body: closed({ content: nullable(content) }),
    answers: {
      200: closed({
        sha256: nullable(Type.String({ description: 'SHA-256 of the current revision; null for a new value set' })),
        changed: Type.Boolean({ description: 'True when the text differs from the current revision' }),
        warnings: Type.Array(WarningSchema, { description: 'Warnings about the text' }),
        agents: reached,
      }),
    },
    faults: ['invalid_name', 'invalid_values', 'values_conflict', 'values_not_found', 'rate_limited'],
  }),
  getValueSet: route({
    id: 'getValueSet',
    summary: "A value set's details and content",
    tag: 'values',
    method: 'GET',
    path: '/values/{name}',
    access: 'read',
    grants: 'shared',
    tagged: true,
    params,
    query: closed({
      revision: optional(Type.Integer({ minimum: 1, description: 'An older revision, also of a removed value set' })),
    }),
    answers: { 200: ValueSetSchema },
    faults: ['values_not_found'],
  }),
  listValueSetRevisions: route({
    id: 'listValueSetRevisions',
    summary: 'Stored revisions of a value set, newest first, also of a removed one',
    tag: 'values',
    method: 'GET',
    path: '/values/{name}/revisions',
    access: 'read',
    grants: 'shared',
    params,
    answers: {
      200: closed({ revisions: Type.Array(ValueSetRevisionSchema, { description: 'Revisions, newest first' }) }),
    },
    faults: ['values_not_found'],
  }),
  removeValueSet: route({
    id: 'removeValueSet',
    summary: 'Delete a value set, which reaches its agents',
    tag: 'values',
    method: 'DELETE',
    path: '/values/{name}',
    access: 'values',
    grants: 'filtered',
    tagged: true,
    params,
    answers: { 204: null },
    faults: ['values_not_found'],
  }),
  explainValues: route({
    id: 'explainValues',
    summary: 'The values of the inputs of an agent’s modules, and where they come from',
    tag: 'values',
    method: 'GET',
    path: '/agents/{node_id}/values',
    access: 'read',
    params: NodeParams,
    query: closed({ module: optional(Type.String({ description: 'A module, also one that no assignment gives' })) }),
    answers: {
      200: closed({
        modules: Type.Array(ExplainedModuleSchema, { description: 'Modules of the agent that have inputs' }),
      }),
    },
    faults: ['agent_not_found', 'agent_not_approved', 'module_not_found'],
  }),
} as const;
