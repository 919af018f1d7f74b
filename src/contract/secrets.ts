/** Secrets: values that modules name and nobody reads back; the API shows what is known about them. */
import * as Type from 'typebox';
import { clearable, closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { KeyId, Seconds } from './shapes.js';

const Timestamp = Type.String({ description: 'RFC 3339' });
/** As it is told: in UTC with milliseconds. */
const Moment = Type.String({ format: 'date-time', description: 'RFC 3339 in UTC with milliseconds' });

/** Largest value in bytes of UTF-8. */
export const MAX_SECRET_BYTES = 64 * 1024;

export const RestrictionSchema = closed({
  node_ids: nullable(Type.Array(KeyId, { description: 'The only agents that may have it' })),
  tags: nullable(Type.String({ description: 'Selector over the tags that operators give' })),
});
export type Restriction = Type.Static<typeof RestrictionSchema>;

/** As it is told: a list in any case, empty when the agents are not restricted. */
const ShownRestriction = closed({
  node_ids: Type.Array(KeyId, { description: 'The only agents that may have it; empty when that does not matter' }),
  tags: nullable(Type.String({ description: 'Selector over the tags that operators give' })),
});

export const SecretSchema = closed({
  name: Type.String(),
  description: nullable(Type.String()),
  expires_at: nullable(Moment),
  restriction: Type.Optional(ShownRestriction),
  created_at: Moment,
  created_by: Type.String({ description: 'operator_id' }),
  updated_at: Moment,
  updated_by: Type.String({ description: 'operator_id' }),
});
export type Secret = Type.Static<typeof SecretSchema>;

export const SecretUsageSchema = closed({
  name: Type.String(),
  modules: Type.Array(Type.String(), { description: 'Modules whose current revision names it' }),
  agents: Type.Array(
    closed({
      node_id: KeyId,
      name: nullable(Type.String()),
      current: Type.Boolean({ description: 'Everything on the agent was applied with the current value' }),
      applied_at: Seconds,
    }),
    { description: 'Agents that hold it since their last applies' },
  ),
});
export type SecretUsage = Type.Static<typeof SecretUsageSchema>;

const params = closed({ name: Type.String({ minLength: 1, maxLength: 128 }) });

const Description = Type.String({ maxLength: 1024 });

/** Both the nodes and the tags have to fit where both are given. */
const NewRestriction = closed({
  node_ids: optional(Type.Array(Type.String(), { maxItems: 10_000 })),
  tags: optional(Type.String()),
});
export type NewRestriction = Type.Static<typeof NewRestriction>;

export const CreateSecretSchema = closed({
  name: Type.String(),
  value: Type.String({ description: 'Plain text, at most 64 KiB in UTF-8' }),
  description: optional(Description),
  expires_at: optional(Timestamp),
  restriction: optional(NewRestriction),
});
export type CreateSecret = Type.Static<typeof CreateSecretSchema>;

export const UpdateSecretSchema = closed({
  value: optional(Type.String({ description: 'The new value; null leaves the old one' })),
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
    access: 'viewer',
    answers: { 200: Type.Array(SecretSchema) },
    faults: [],
  }),
  createSecret: route({
    id: 'createSecret',
    summary: 'Create a secret',
    tag: 'secrets',
    method: 'POST',
    path: '/secrets',
    access: 'operator',
    tls: true,
    body: CreateSecretSchema,
    answers: { 201: SecretSchema },
    faults: ['invalid_name', 'invalid_restriction', 'invalid_selector', 'secret_exists', 'tls_required'],
  }),
  getSecret: route({
    id: 'getSecret',
    summary: 'What is known about a secret, without its value',
    tag: 'secrets',
    method: 'GET',
    path: '/secrets/{name}',
    access: 'viewer',
    params,
    answers: { 200: SecretSchema },
    faults: ['secret_not_found'],
  }),
  updateSecret: route({
    id: 'updateSecret',
    summary: 'Change a secret; what is left out stays',
    tag: 'secrets',
    method: 'PUT',
    path: '/secrets/{name}',
    access: 'operator',
    tls: true,
    params,
    body: UpdateSecretSchema,
    answers: { 200: SecretSchema },
    faults: ['secret_not_found', 'invalid_restriction', 'invalid_selector', 'secrets_locked', 'tls_required'],
  }),
  removeSecret: route({
    id: 'removeSecret',
    summary: 'Delete a secret; what was applied with it stays on the agents',
    tag: 'secrets',
    method: 'DELETE',
    path: '/secrets/{name}',
    access: 'operator',
    tls: true,
    params,
    answers: { 204: null },
    faults: ['secret_not_found', 'tls_required'],
  }),
  getSecretUsage: route({
    id: 'getSecretUsage',
    summary: 'Which modules name a secret and which agents hold it',
    tag: 'secrets',
    method: 'GET',
    path: '/secrets/{name}/usage',
    access: 'viewer',
    params,
    answers: { 200: SecretUsageSchema },
    faults: ['secret_not_found'],
  }),
} as const;
