/** Handlers of secrets. */
import type { SecretUsage, secretRoutes } from '../../src/contract/secrets.js';
import type { HandlersFor } from '../http/handler.js';
import type { SecretService } from './secret-service.js';

export interface SecretHandlersOptions {
  readonly secrets: SecretService;
  /** Throws `secret_not_found`. */
  readonly usage: (name: string) => Promise<SecretUsage>;
}

export const secretHandlers = ({ secrets, usage }: SecretHandlersOptions): HandlersFor<typeof secretRoutes> => ({
  listSecrets: async () => ({ status: 200, body: await secrets.list() }),
  createSecret: async ({ body, context }) => ({ status: 201, body: await secrets.create(body, context) }),
  getSecret: async ({ params }) => ({ status: 200, body: await secrets.get(params.name) }),
  updateSecret: async ({ params, body, context }) => ({
    status: 200,
    body: await secrets.update(params.name, body, context),
  }),
  removeSecret: async ({ params, context }) => {
    await secrets.remove(params.name, context);
    return { status: 204, body: undefined };
  },
  getSecretUsage: async ({ params }) => ({ status: 200, body: await usage(params.name) }),
});
