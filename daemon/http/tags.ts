/** Handlers of the tags' routes. */
import type { tagRoutes } from '../../src/contract/tags.js';
import type { TagService } from '../fleet/tag-service.js';
import type { HandlersFor } from './handler.js';

export const tagHandlers = (tags: TagService): HandlersFor<typeof tagRoutes> => ({
  listTags: async () => ({ status: 200, body: { tags: await tags.list() } }),
  replaceTags: async ({ params, body, context }) => {
    await tags.replace(context, params.node_id, body.tags);
    return { status: 204, body: undefined };
  },
  setTag: async ({ params, body, context }) => {
    await tags.set(context, params.node_id, { key: params.key, value: body.value });
    return { status: 204, body: undefined };
  },
  removeTag: async ({ params, context }) => {
    await tags.remove(context, params.node_id, params.key);
    return { status: 204, body: undefined };
  },
});
