/** Operators: people and robots with a login. */
import * as Type from 'typebox';
import { clearable, closed, nullable, optional } from '../kernel/schema.js';
import { GrantSchema, MAX_GRANTS, RIGHTS, ROLES } from './rights.js';
import { route } from './route.js';
import { OperatorId, PublicKey, pathId, Seconds } from './shapes.js';

/** Longest time until the end of a robot, in seconds. */
export const ROBOT_LIFE_SECS = 366 * 86_400;

const Grants = Type.Array(GrantSchema, { minItems: 1, maxItems: MAX_GRANTS, description: 'Rights on some machines' });

export const OperatorSchema = closed({
  operator_id: OperatorId,
  username: Type.String({ description: 'Name of the operator, which never changes' }),
  role: Type.Enum(ROLES, {
    description:
      'admin: every operation; operator: all but those for admins; deployer: plans and applies; planner: plans of what is assigned; viewer: only reads',
  }),
  bootstrap: Type.Boolean({ description: 'True for the operator of the first start' }),
  added_at: Seconds,
  added_by: Type.String({ description: 'operator_id, or "system" for the first one' }),
  removed_at: nullable(Seconds),
  removed_by: nullable(Type.String({ description: 'operator_id; null for an active operator' })),
  public_key: PublicKey,
  grants: Type.Optional({
    ...Grants,
    description: 'Limits the rights of the role to some machines; absent for an operator with all of them everywhere',
  }),
  expires_at: Type.Optional({
    ...Seconds,
    description: 'Unix time in seconds from which the operator may do nothing; absent for an operator without an end',
  }),
  robot: Type.Optional(
    Type.Literal(true, { description: 'A program, which gets no terminal and has an end; absent for a person' }),
  ),
  last_used_at: Type.Optional({
    ...nullable(Seconds),
    description: 'Of a robot: Unix time in seconds of its last request, to a minute; null before the first',
  }),
});
export type Operator = Type.Static<typeof OperatorSchema>;

export const OperatorRightsSchema = closed({
  operator_id: OperatorId,
  username: Type.String({ description: 'Name of the operator' }),
  role: Type.Enum(ROLES, { description: 'Role, whose rights the grants limit' }),
  node_id: nullable(Type.String({ description: 'Node ID of the machine; null for any' })),
  rights: Type.Array(Type.Enum(RIGHTS), { description: 'Rights held there; none for a removed or expired operator' }),
  tag_keys: Type.Array(Type.String(), {
    description:
      'Keys of tags that may be set there although grants select by them; empty without grants, which need none',
  }),
});
export type OperatorRights = Type.Static<typeof OperatorRightsSchema>;

const params = closed({ operator_id: pathId('operator_id, or username of an active operator') });

export const operatorRoutes = {
  listOperators: route({
    id: 'listOperators',
    summary: 'List operators',
    tag: 'operators',
    method: 'GET',
    path: '/operators',
    access: 'read',
    grants: 'shared',
    query: closed({ include_removed: optional(Type.Boolean({ description: 'true: removed operators too' })) }),
    answers: { 200: Type.Array(OperatorSchema) },
    faults: [],
  }),
  addOperator: route({
    id: 'addOperator',
    summary: 'Add an operator',
    tag: 'operators',
    method: 'POST',
    path: '/operators',
    access: 'admin',
    body: closed({
      public_key: Type.String({ description: 'Hex-encoded Ed25519 public key' }),
      username: Type.String({ description: 'Immutable' }),
      role: optional(Type.String({ description: 'admin, operator (the default), deployer, planner or viewer' })),
      grants: optional({ ...Grants, description: 'Limits the rights of the role to some machines' }),
      expires_at: optional(
        Type.Integer({ description: 'Unix time in seconds from which the operator may do nothing [default: no end]' }),
      ),
      robot: optional(
        Type.Boolean({
          description: 'true: a program, which gets no terminal, is no admin, and needs an end within 366 days',
        }),
      ),
    }),
    location: '/operators/{operator_id}',
    answers: { 201: OperatorSchema },
    faults: [
      'invalid_public_key',
      'invalid_username',
      'invalid_role',
      'invalid_grant',
      'invalid_expiry',
      'expiry_beyond_own',
      'operator_exists',
    ],
  }),
  setOperatorGrants: route({
    id: 'setOperatorGrants',
    summary: 'Replace the role, the grants and the end of an operator; what they may no longer do ends at once',
    tag: 'operators',
    method: 'PUT',
    path: '/operators/{operator_id}/grants',
    access: 'admin',
    params,
    body: closed({
      role: optional(Type.String({ description: 'The new role [default: as before]' })),
      grants: nullable({ ...Grants, description: 'null: none, so the role counts on every machine' }),
      expires_at: clearable(
        Type.Integer({
          description: 'Unix time in seconds from which the operator may do nothing; null: no end [default: as before]',
        }),
      ),
    }),
    answers: { 200: OperatorSchema },
    faults: [
      'operator_not_found',
      'invalid_role',
      'invalid_grant',
      'invalid_expiry',
      'expiry_beyond_own',
      'last_admin',
    ],
  }),
  rotateOperatorKey: route({
    id: 'rotateOperatorKey',
    summary: 'Replace the key of the calling operator; the earlier key and all its sessions end at once',
    tag: 'operators',
    method: 'POST',
    path: '/operators/rotate-key',
    access: 'read',
    grants: 'shared',
    body: closed({
      public_key: Type.String({ description: 'Hex-encoded Ed25519 public key that replaces that of the caller' }),
      proof: Type.String({
        description:
          'Signature in hex, by the new key: "orch-rotate-key-v1", a zero byte, the 32 bytes of the earlier public key, those of the new one',
      }),
    }),
    answers: { 200: OperatorSchema },
    faults: ['invalid_public_key', 'invalid_key_proof', 'operator_exists', 'rate_limited'],
  }),
  getOperator: route({
    id: 'getOperator',
    summary: 'Get one operator',
    tag: 'operators',
    method: 'GET',
    path: '/operators/{operator_id}',
    access: 'read',
    grants: 'shared',
    params,
    answers: { 200: OperatorSchema },
    faults: ['operator_not_found'],
  }),
  getOperatorRights: route({
    id: 'getOperatorRights',
    summary: 'Tell what an operator may do: somewhere, or on one machine',
    tag: 'operators',
    method: 'GET',
    path: '/operators/{operator_id}/rights',
    access: 'read',
    grants: 'filtered',
    params,
    query: closed({ node: optional(Type.String({ description: 'Node ID of the machine [default: any]' })) }),
    answers: { 200: OperatorRightsSchema },
    faults: ['operator_not_found', 'agent_not_found'],
  }),
  removeOperator: route({
    id: 'removeOperator',
    summary: 'Remove an operator and end all its sessions at once',
    tag: 'operators',
    method: 'DELETE',
    path: '/operators/{operator_id}',
    access: 'admin',
    params,
    answers: { 204: null },
    faults: ['operator_not_found', 'last_admin'],
  }),
} as const;
