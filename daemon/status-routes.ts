/** Health, and the documents about the API itself. */
import type { Status, statusRoutes } from '../src/contract/status.js';
import type { HandlersFor } from './http/handler.js';

export interface StatusOptions {
  /** How the orchestrator is, now. */
  health(): Promise<Status>;
  /** The OpenAPI document; asked for once, at the first request. */
  openApi(): Readonly<Record<string, unknown>>;
  /** The JSON Schema of a module; asked for once, at the first request. */
  moduleSchema(): Readonly<Record<string, unknown>>;
}

export function statusHandlers(options: StatusOptions): HandlersFor<typeof statusRoutes> {
  const openApi = once(options.openApi);
  const moduleSchema = once(options.moduleSchema);
  return {
    getStatus: async () => ({ status: 200, body: await options.health() }),
    getOpenApi: async () => ({ status: 200, body: openApi() }),
    getModuleSchema: async () => ({ status: 200, body: moduleSchema() }),
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
