/** Modules: declarative lists of resources with revisions. */
import * as Type from 'typebox';
import { ASSIGNMENT_MODES } from '../kernel/assignment-modes.js';
import { closed, nullable, optional } from '../kernel/schema.js';
import { ModuleFilesSchema } from './files.js';
import { ownValues } from './one-off-values.js';
import { route } from './route.js';
import { REPLACES } from './run-targets.js';
import { AgentName, NodeId, pathName, Seconds } from './shapes.js';

export const ModuleEntrySchema = closed({
  name: Type.String({ description: 'Name of the module' }),
  uploaded_at: Seconds,
  uploaded_by: Type.String({ description: 'operator_id' }),
});
export type ModuleEntry = Type.Static<typeof ModuleEntrySchema>;

export const WarningSchema = closed({
  path: Type.String({ description: 'JSON pointer' }),
  line: Type.Integer({ description: 'Line in the text, from 1' }),
  column: Type.Integer({ description: 'Column in that line, from 1' }),
  message: Type.String({ description: 'The warning and what helps' }),
});
export type Warning = Type.Static<typeof WarningSchema>;

const params = closed({ name: pathName('Name of the module') });

export const ModuleSchema = closed({
  ...ModuleEntrySchema.properties,
  revision: Type.Integer({ minimum: 1, description: 'Number of the revision, from 1' }),
  sha256: Type.String({ description: 'SHA-256 of the text, and of the list of files where there are some' }),
  content: Type.String({ description: 'The uploaded YAML text' }),
  files: Type.Optional(ModuleFilesSchema),
  definition: Type.Record(Type.String(), Type.Unknown(), { description: 'The content as data' }),
});
export type Module = Type.Static<typeof ModuleSchema>;

const ModuleRevisionSchema = closed({
  ...ModuleEntrySchema.properties,
  revision: Type.Integer({ minimum: 1, description: 'Number of the revision, from 1' }),
  sha256: Type.String({ description: 'SHA-256 of the text, and of the list of files where there are some' }),
});
export type ModuleRevision = Type.Static<typeof ModuleRevisionSchema>;

/** Whom a new revision of a module reaches. */
const ModuleReachSchema = closed({
  name: Type.String({ description: 'Name of the module' }),
  sha256: nullable(
    Type.String({ description: 'SHA-256 of the stored revision; null for a module that is not stored' }),
  ),
  may_store: optional(Type.Boolean({ description: 'false: you may not store this module; absent if you may' })),
  assignments: Type.Array(
    closed({
      name: Type.String({ description: 'Name of the assignment' }),
      mode: Type.Enum(ASSIGNMENT_MODES, { description: 'When the orchestrator applies by itself' }),
      agents: Type.Integer({ description: 'Approved agents that it matches now' }),
    }),
    { description: 'Assignments that name the module' },
  ),
  agents: Type.Array(
    closed({
      node_id: NodeId,
      name: AgentName,
      mode: nullable(
        Type.Enum(ASSIGNMENT_MODES, {
          description: 'Strongest mode of the assignments that give it the module; null if only a request gave it',
        }),
      ),
      on_trial: Type.Boolean({ description: 'True for an agent on trial, which automatic applies leave alone' }),
      ...ownValues,
      tried: nullable(Type.String({ description: 'SHA-256 of the text of the module that it has on trial' })),
    }),
    { description: 'Approved agents that follow the module' },
  ),
});
export type ModuleReach = Type.Static<typeof ModuleReachSchema>;

export const moduleRoutes = {
  listModules: route({
    id: 'listModules',
    summary: 'List modules by name',
    tag: 'modules',
    method: 'GET',
    path: '/modules',
    access: 'read',
    grants: 'shared',
    answers: { 200: Type.Array(ModuleEntrySchema) },
    faults: [],
  }),
  uploadModule: route({
    id: 'uploadModule',
    summary: 'Upload a module; an existing name gets a new revision',
    tag: 'modules',
    method: 'POST',
    path: '/modules',
    access: 'modules',
    grants: 'filtered',
    body: closed({
      name: Type.String({ description: 'Name of the module' }),
      content: Type.String({ description: 'YAML; its name must equal `name`' }),
      files: optional(ModuleFilesSchema),
      replaces: optional(
        Type.String({
          pattern: REPLACES,
          description:
            'SHA-256 of the revision that the new one replaces, or `none` for a new module; another current revision is an error. Absent: whatever is current',
        }),
      ),
    }),
    location: '/modules/{name}',
    answers: {
      201: closed({
        ...ModuleEntrySchema.properties,
        revision: Type.Integer({ minimum: 1, description: 'Number of the revision, from 1' }),
        sha256: Type.String({ description: 'SHA-256 of the current revision, for `replaces`' }),
        changed: Type.Boolean({
          description: 'false when the text equals the current revision, so that no new one is stored',
        }),
        warnings: Type.Array(WarningSchema, { description: 'Warnings about the text' }),
      }),
    },
    faults: ['invalid_module', 'file_not_found', 'rate_limited', 'precondition_failed'],
  }),
  getModule: route({
    id: 'getModule',
    summary: "A module's details and content",
    tag: 'modules',
    method: 'GET',
    path: '/modules/{name}',
    access: 'read',
    grants: 'shared',
    tagged: true,
    params,
    query: closed({
      revision: optional(Type.Integer({ minimum: 1, description: 'An older revision. Default: the current one' })),
    }),
    answers: { 200: ModuleSchema },
    faults: ['module_not_found'],
  }),
  listModuleRevisions: route({
    id: 'listModuleRevisions',
    summary: 'Stored revisions of a module, newest first; the first is the current one',
    tag: 'modules',
    method: 'GET',
    path: '/modules/{name}/revisions',
    access: 'read',
    grants: 'shared',
    params,
    answers: {
      200: closed({ revisions: Type.Array(ModuleRevisionSchema, { description: 'Revisions, newest first' }) }),
    },
    faults: ['module_not_found'],
  }),
  getModuleReach: route({
    id: 'getModuleReach',
    summary: 'Whom a new revision of a module would reach: the assignments that name it and the agents that follow it',
    tag: 'modules',
    method: 'GET',
    path: '/modules/{name}/reach',
    access: 'read',
    grants: 'filtered',
    params,
    answers: { 200: ModuleReachSchema },
    faults: [],
  }),
  removeModule: route({
    id: 'removeModule',
    summary: 'Delete a module that no assignment names',
    tag: 'modules',
    method: 'DELETE',
    path: '/modules/{name}',
    access: 'modules',
    grants: 'filtered',
    tagged: true,
    params,
    answers: { 204: null },
    faults: ['module_not_found', 'module_in_use'],
  }),
} as const;
