/** Login by challenge and signature, and the session. */
import * as Type from 'typebox';
import { closed } from '../kernel/schema.js';
import { OperatorSchema } from './operators.js';
import { route } from './route.js';
import { Seconds } from './shapes.js';

const SessionSchema = closed({ operator: OperatorSchema, expires_at: Seconds });

export const authRoutes = {
  createChallenge: route({
    id: 'createChallenge',
    summary: 'Issue a nonce to sign',
    tag: 'auth',
    method: 'POST',
    path: '/auth/challenge',
    access: 'public',
    body: closed({ public_key: Type.String({ description: 'Hex-encoded Ed25519 public key' }) }),
    answers: { 200: closed({ nonce: Type.String({ description: '32 bytes in hex' }) }) },
    faults: ['invalid_public_key', 'unknown_operator', 'rate_limited'],
  }),
  verifyChallenge: route({
    id: 'verifyChallenge',
    summary: 'Exchange a signed nonce for a session token',
    tag: 'auth',
    method: 'POST',
    path: '/auth/verify',
    access: 'public',
    body: closed({
      public_key: Type.String({ description: 'Hex-encoded Ed25519 public key' }),
      signature: Type.String({ description: 'Hex-encoded Ed25519 signature over the 32 raw bytes of the nonce' }),
    }),
    answers: {
      200: closed({
        token: Type.String({ description: 'Session token for `Authorization: Bearer`' }),
        expires_at: Seconds,
      }),
    },
    faults: [
      'invalid_public_key',
      'invalid_signature',
      'signature_verification_failed',
      'operator_expired',
      'rate_limited',
    ],
  }),
  getSession: route({
    id: 'getSession',
    summary: 'The operator of this token',
    tag: 'auth',
    method: 'GET',
    path: '/auth/session',
    access: 'read',
    grants: 'shared',
    answers: { 200: SessionSchema },
    faults: [],
  }),
  endSession: route({
    id: 'endSession',
    summary: 'Log out',
    tag: 'auth',
    method: 'DELETE',
    path: '/auth/session',
    access: 'read',
    grants: 'shared',
    answers: { 204: null },
    faults: [],
  }),
} as const;
