/** Handlers of modules. */
import type { moduleRoutes } from '../../src/contract/modules.js';
import type { HandlersFor } from '../http/handler.js';
import type { ModuleService } from './module-service.js';

export const moduleHandlers = (modules: ModuleService): HandlersFor<typeof moduleRoutes> => ({
  listModules: async () => ({ status: 200, body: await modules.list() }),
  uploadModule: async ({ body, context }) => ({ status: 201, body: await modules.upload(body, context) }),
  getModule: async ({ params, query }) => ({ status: 200, body: await modules.get(params.name, query.revision) }),
  listModuleRevisions: async ({ params }) => ({
    status: 200,
    body: { revisions: await modules.revisions(params.name) },
  }),
  removeModule: async ({ params, context }) => {
    await modules.remove(params.name, context);
    return { status: 204, body: undefined };
  },
});
