/** Login, log-out and who a token belongs to. */
import type { authRoutes } from '../../src/contract/auth.js';
import { unauthenticated } from '../auth/access.js';
import type { Auth } from '../auth/auth.js';
import type { HandlersFor } from './handler.js';

export const authHandlers = ({
  login,
  sessions,
}: Pick<Auth, 'login' | 'sessions'>): HandlersFor<typeof authRoutes> => ({
  createChallenge: async ({ body, context }) => ({
    status: 200,
    body: { nonce: await login.challenge(body.public_key, context) },
  }),

  verifyChallenge: async ({ body, context }) => {
    const { token, expiresAt } = await login.verify(body.public_key, body.signature, context);
    return { status: 200, body: { token, expires_at: expiresAt } };
  },

  getSession: async ({ token }) => {
    const session = await sessions.authenticate(token);
    if (!session) throw unauthenticated();
    return { status: 200, body: { operator: session.operator, expires_at: session.expiresAt } };
  },

  endSession: async ({ token, context }) => {
    await sessions.revoke(token, context);
    return { status: 204, body: undefined };
  },
});
