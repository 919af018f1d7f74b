/** Secrets: write-only values that modules name. The API shows everything but the value. */
import * as Type from 'typebox';
import { clearable, closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { AgentName, KeyId, NodeId, pathName, Seconds } from './shapes.js';

const Timestamp = Type.String({ format: 'date-time', description: 'RFC 3339' });
/** Timestamp in answers, in UTC with milliseconds. */
const Moment = Type.String({ format: 'date-time', description: 'RFC 3339 in UTC with milliseconds' });

/** Maximum size of a value in bytes of UTF-8. */
export const MAX_SECRET_BYTES = 64 * 1024;

const RestrictionSchema = closed({
  node_ids: nullable(Type.Array(KeyId, { description: 'The only agents that may have it' })),
  tags: nullable(Type.String({ description: 'Selector over the tags that operators set' })),
});
export type Restriction = Type.Static<typeof RestrictionSchema>;

/** Restriction in answers: always with a list, empty when node IDs are not restricted. */
const ShownRestriction = closed(
  {
    node_ids: Type.Array(KeyId, { description: 'The only agents that may have it; empty for any agent' }),
    tags: nullable(Type.String({ description: 'Selector over the tags that operators set' })),
  },
  { description: 'Agents that may have it; absent without a restriction' },
);

export const SecretSchema = closed({
  name: Type.String({ description: 'Name of the secret' }),
  description: nullable(Type.String({ description: 'Text for people; null without one' })),
  expires_at: nullable(Moment),
  restriction: Type.Optional(ShownRestriction),
  created_at: Moment,
  created_by: Type.String({ description: 'operator_id' }),
  updated_at: Moment,
  updated_by: Type.String({ description: 'operator_id' }),
});
export type Secret = Type.Static<typeof SecretSchema>;

export const SecretUsageSchema = closed({
  name: Type.String({ description: 'Name of the secret' }),
  modules: Type.Array(Type.String(), { description: 'Modules whose current revision names it' }),
  values: Type.Array(Type.String(), { description: 'Value sets that give it to an input' }),
  agents: Type.Array(
    closed({
      node_id: NodeId,
      name: AgentName,
      current: Type.Boolean({ description: 'True when everything on the agent was applied with the current value' }),
      applied_at: Seconds,
    }),
    { description: 'Agents that hold it since their last applies' },
  ),
});
export type SecretUsage = Type.Static<typeof SecretUsageSchema>;

const params = closed({ name: pathName('Name of the secret') });

const Description = Type.String({ maxLength: 1024, description: 'Text for people' });

/** Restriction to nodes and tags; with both, an agent must match both. */
const NewRestriction = closed(
  {
    node_ids: optional(
      Type.Array(Type.String(), { maxItems: 10_000, description: 'node_id of the only agents that may have it' }),
    ),
    tags: optional(Type.String({ description: 'Selector over the tags that operators set' })),
  },
  { description: 'Agents that may have it; with both members an agent must match both' },
);
export type NewRestriction = Type.Static<typeof NewRestriction>;

const CreateSecretSchema = closed({
  name: Type.String({ description: 'Name of the new secret, as modules write it' }),
  value: Type.String({ description: 'Plain text, at most 64 KiB in UTF-8' }),
  description: optional(Description),
  expires_at: optional(Timestamp),
  restriction: optional(NewRestriction),
});
export type CreateSecret = Type.Static<typeof CreateSecretSchema>;

const UpdateSecretSchema = closed({
  value: optional(Type.String({ description: 'New value; null keeps the old one' })),
  description: clearable(Description),
  expires_at: clearable(Timestamp),
  restriction: clearable(NewRestriction),
});
export type UpdateSecret = Type.Static<typeof UpdateSecretSchema>;

export const secretRoutes = {
  listSecrets: route({
    id: 'listSecrets',
    summary: 'List secrets by name, without their values',
    tag: 'secrets',
    method: 'GET',
    path: '/secrets',
    access: 'read',
    grants: 'shared',
    answers: { 200: Type.Array(SecretSchema) },
    faults: [],
  }),
  createSecret: route({
    id: 'createSecret',
    summary: 'Create a secret',
    tag: 'secrets',
    method: 'POST',
    path: '/secrets',
    access: 'secrets',
    grants: 'filtered',
    tagged: true,
    tls: true,
    body: CreateSecretSchema,
    location: '/secrets/{name}',
    answers: { 201: SecretSchema },
    faults: ['invalid_name', 'invalid_restriction', 'invalid_selector', 'secret_exists', 'tls_required'],
  }),
  getSecret: route({
    id: 'getSecret',
    summary: 'One secret without its value',
    tag: 'secrets',
    method: 'GET',
    path: '/secrets/{name}',
    access: 'read',
    grants: 'shared',
    tagged: true,
    params,
    answers: { 200: SecretSchema },
    faults: ['secret_not_found'],
  }),
  updateSecret: route({
    id: 'updateSecret',
    summary: 'Change a secret; absent members stay',
    tag: 'secrets',
    method: 'PUT',
    path: '/secrets/{name}',
    access: 'secrets',
    grants: 'filtered',
    tagged: true,
    tls: true,
    params,
    body: UpdateSecretSchema,
    answers: { 200: SecretSchema },
    faults: ['secret_not_found', 'invalid_restriction', 'invalid_selector', 'secrets_locked', 'tls_required'],
  }),
  removeSecret: route({
    id: 'removeSecret',
    summary: 'Delete a secret; resources applied with it stay on the agents',
    tag: 'secrets',
    method: 'DELETE',
    path: '/secrets/{name}',
    access: 'secrets',
    grants: 'filtered',
    tagged: true,
    tls: true,
    params,
    answers: { 204: null },
    faults: ['secret_not_found', 'tls_required'],
  }),
  getSecretUsage: route({
    id: 'getSecretUsage',
    summary: 'Modules that name a secret, and agents that hold it',
    tag: 'secrets',
    method: 'GET',
    path: '/secrets/{name}/usage',
    access: 'read',
    grants: 'filtered',
    params,
    answers: { 200: SecretUsageSchema },
    faults: ['secret_not_found'],
  }),
} as const;
