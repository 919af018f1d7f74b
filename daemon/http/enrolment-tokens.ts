/** Handlers of the enrolment tokens' routes. */
import type { enrolmentTokenRoutes } from '../../src/contract/enrolment-tokens.js';
import type { EnrolmentTokens } from '../fleet/enrolment-tokens.js';
import type { HandlersFor } from './handler.js';

export const enrolmentTokenHandlers = (tokens: EnrolmentTokens): HandlersFor<typeof enrolmentTokenRoutes> => ({
  listEnrolmentTokens: async () => ({ status: 200, body: [...(await tokens.list())] }),
  createEnrolmentToken: async ({ body, context }) => ({ status: 201, body: await tokens.create(context, body) }),
  revokeEnrolmentToken: async ({ params, context }) => {
    await tokens.revoke(context, params.id);
    return { status: 204, body: undefined };
  },
});
