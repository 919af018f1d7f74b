/** Operators: people and pipelines with a login. */
import * as Type from 'typebox';
import { closed, nullable, optional } from '../kernel/schema.js';
import { route } from './route.js';
import { OperatorId, PublicKey, pathId, Seconds } from './shapes.js';

export const ROLES = ['admin', 'operator', 'viewer'] as const;
export type Role = (typeof ROLES)[number];

export const OperatorSchema = closed({
  operator_id: OperatorId,
  username: Type.String({ description: 'Name of the operator, which never changes' }),
  role: Type.Enum(ROLES, {
    description: 'admin: every operation; operator: all but those for admins; viewer: only reads',
  }),
  bootstrap: Type.Boolean({ description: 'True for the operator of the first start' }),
  added_at: Seconds,
  added_by: Type.String({ description: 'operator_id, or "system" for the first one' }),
  removed_at: nullable(Seconds),
  removed_by: nullable(Type.String({ description: 'operator_id; null for an active operator' })),
  public_key: PublicKey,
});
export type Operator = Type.Static<typeof OperatorSchema>;

const params = closed({ operator_id: pathId('operator_id, or username of an active operator') });

export const operatorRoutes = {
  listOperators: route({
    id: 'listOperators',
    summary: 'List operators',
    tag: 'operators',
    method: 'GET',
    path: '/operators',
    access: 'viewer',
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
      role: optional(Type.String({ description: 'admin, operator (the default) or viewer' })),
    }),
    location: '/operators/{operator_id}',
    answers: { 201: OperatorSchema },
    faults: ['invalid_public_key', 'invalid_username', 'invalid_role', 'operator_exists'],
  }),
  rotateOperatorKey: route({
    id: 'rotateOperatorKey',
    summary: 'Replace the key of the calling operator; the earlier key and all its sessions end at once',
    tag: 'operators',
    method: 'POST',
    path: '/operators/rotate-key',
    access: 'viewer',
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
    access: 'viewer',
    params,
    answers: { 200: OperatorSchema },
    faults: ['operator_not_found'],
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
