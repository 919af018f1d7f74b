/** Enrolment tokens, with which a new machine trusts its orchestrator, skips the queue or is approved at once. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { pathId, Seconds, StringMap, ulidOf } from './shapes.js';

/** Lifetime of a token in seconds. */
export const TOKEN_TTL = { standard: 3600, maximum: 7 * 24 * 3600 } as const;
/** Seconds without a connection after which the agents of an ephemeral token are removed. */
export const TOKEN_EPHEMERAL = { minimum: 300, standard: 3600, maximum: 7 * 24 * 3600 } as const;
/** Number of agents that a token admits. */
export const TOKEN_USES = { standard: 1, maximum: 1000 } as const;

const members = {
  id: ulidOf('ID of the token; not its secret'),
  created_by: Type.String({ description: 'operator_id' }),
  created_at: Seconds,
  expires_at: Seconds,
  uses: Type.Integer({ description: 'Number of agents that it admits' }),
  uses_left: Type.Integer({ description: 'Number of agents that it still admits' }),
  tags: { ...StringMap, description: 'Tags of each agent that it admits' },
  auto_approve: Type.Boolean({ description: 'Its agents are approved at once, under their host names' }),
  last_used_at: nullable(Seconds),
  ephemeral_secs: Type.Optional(
    Type.Integer({
      description: 'Seconds without a connection after which its agents are removed; absent for agents that stay',
    }),
  ),
};

const EnrolmentTokenSchema = closed(members);
export type EnrolmentTokenRecord = Type.Static<typeof EnrolmentTokenSchema>;

const CreatedEnrolmentTokenSchema = closed({
  ...members,
  token: Type.String({ description: 'Shown only once, because it is not stored' }),
  agent_host: nullable(
    Type.String({ description: 'Host under which agents reach the orchestrator; null when unknown' }),
  ),
  agent_port: Type.Integer({ description: 'Port of the agent link' }),
  reachable_host: Type.String({
    description: 'Address of this orchestrator that other machines can probably reach; loopback when it has no other',
  }),
  install: nullable(
    closed(
      {
        pin: Type.String({ description: 'Pin of the key that the agent port shows, as curl reads it: `sha256//…`' }),
        cpus: Type.Array(Type.String(), {
          description:
            'Processors for which the orchestrator has a package that machines without orch download from the agent port',
        }),
      },
      { description: 'How a machine without orch downloads it; null without a package' },
    ),
  ),
});
export type CreatedEnrolmentToken = Type.Static<typeof CreatedEnrolmentTokenSchema>;

const NewEnrolmentTokenSchema = closed({
  ttl_secs: optional(
    Type.Integer({ minimum: 1, maximum: TOKEN_TTL.maximum, description: `Default ${TOKEN_TTL.standard}` }),
  ),
  uses: optional(
    Type.Integer({ minimum: 1, maximum: TOKEN_USES.maximum, description: `Default ${TOKEN_USES.standard}` }),
  ),
  tags: optional(Type.Record(Type.String(), Type.String(), { description: 'Tags of each agent that it admits' })),
  auto_approve: optional(Type.Boolean({ description: 'Default false' })),
  ephemeral_secs: optional(
    Type.Integer({
      minimum: TOKEN_EPHEMERAL.minimum,
      maximum: TOKEN_EPHEMERAL.maximum,
      description: 'Seconds without a connection after which its agents are removed. Default: they stay',
    }),
  ),
});
export type NewEnrolmentToken = Type.Static<typeof NewEnrolmentTokenSchema>;

export const enrolmentTokenRoutes = {
  listEnrolmentTokens: route({
    id: 'listEnrolmentTokens',
    summary:
      'List enrolment tokens without their secrets, oldest first; expired ones for a week. Operators with grants see their own',
    tag: 'enrolment tokens',
    method: 'GET',
    path: '/enrolment-tokens',
    access: 'enroll',
    grants: 'filtered',
    answers: { 200: Type.Array(EnrolmentTokenSchema) },
    faults: [],
  }),
  createEnrolmentToken: route({
    id: 'createEnrolmentToken',
    summary: 'Create an enrolment token. Grants have to give its maker the right on a machine with exactly its tags',
    tag: 'enrolment tokens',
    method: 'POST',
    path: '/enrolment-tokens',
    access: 'enroll',
    grants: 'filtered',
    tls: true,
    secretAnswer: true,
    body: NewEnrolmentTokenSchema,
    bodyOptional: true,
    location: '/enrolment-tokens/{id}',
    answers: { 201: CreatedEnrolmentTokenSchema },
    faults: ['invalid_tag', 'tls_required'],
  }),
  revokeEnrolmentToken: route({
    id: 'revokeEnrolmentToken',
    summary: 'Revoke an enrolment token; agents that it admitted stay',
    tag: 'enrolment tokens',
    method: 'DELETE',
    path: '/enrolment-tokens/{id}',
    access: 'enroll',
    grants: 'filtered',
    params: closed({ id: pathId('ID of the token') }),
    answers: { 204: null },
    faults: ['enrolment_token_not_found'],
  }),
} as const;
