import { ulid } from 'ulid';
import { onTestFinished } from 'vitest';
import { agentHandlers } from '../../../daemon/fleet/agent-service.js';
import { enrolmentTokenHandlers } from '../../../daemon/fleet/enrolment-tokens.js';
import { tagHandlers } from '../../../daemon/fleet/tag-service.js';
import { type ApiServer, createApiServer } from '../../../daemon/http/api-server.js';
import type { IdempotencyKeys } from '../../../daemon/http/idempotency.js';
import { agentRoutes, tagRoutes } from '../../../src/contract/agents.js';
import { enrolmentTokenRoutes } from '../../../src/contract/enrolment-tokens.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { authenticate, authorize, clock, noKeys } from '../../http/tiny-api.js';
import type { Fleet } from './fleet-fixture.js';

/** The real API with the routes of agents and tags; a token is the name of a role. Ends with the test. */
export async function serveFleet(fleet: Fleet, idempotency: IdempotencyKeys = noKeys): Promise<ApiServer> {
  const api = createApiServer({
    contract: { ...agentRoutes, ...tagRoutes, ...enrolmentTokenRoutes },
    handlers: {
      ...agentHandlers(fleet.agents),
      ...tagHandlers(fleet.tags),
      ...enrolmentTokenHandlers(fleet.tokens),
    },
    authenticate,
    authorize,
    idempotency,
    logger: silentLogger,
    clock,
    newRequestId: () => ulid(),
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    trustProxyTls: false,
    validateAnswers: true,
  });
  await api.start();
  onTestFinished(() => api.stop());
  return api;
}
