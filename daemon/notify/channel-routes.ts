/** Handlers of notification channels. */
import { type channelRoutes, DELIVERY_LIST_LIMIT } from '../../src/contract/channels.js';
import { clampLimit } from '../../src/contract/shapes.js';
import type { HandlersFor } from '../http/handler.js';
import { pageFrom } from '../http/query-string.js';
import type { Notify } from './notify.js';

export const channelHandlers = ({
  channels,
  tester,
}: Pick<Notify, 'channels' | 'tester'>): HandlersFor<typeof channelRoutes> => ({
  listChannels: async () => ({ status: 200, body: await channels.list() }),
  createChannel: async ({ body, context }) => ({ status: 201, body: await channels.create(body, context) }),
  getChannel: async ({ params }) => ({ status: 200, body: await channels.get(params.id) }),
  updateChannel: async ({ params, body, context }) => ({
    status: 200,
    body: await channels.update(params.id, body, context),
  }),
  removeChannel: async ({ params, context }) => {
    await channels.remove(params.id, context);
    return { status: 204, body: undefined };
  },
  testChannel: async ({ params, context, signal }) => ({
    status: 200,
    body: await tester.test(params.id, context, signal),
  }),
  listDeliveries: async ({ params, query }) => {
    const limit = clampLimit(query.limit, DELIVERY_LIST_LIMIT.standard, DELIVERY_LIST_LIMIT.maximum);
    const { items, headers } = pageFrom(
      await channels.deliveries(params.id, { limit: limit + 1, before: query.cursor ?? null }),
      {
        path: `/channels/${params.id}/deliveries`,
        query: { ...query, limit },
        cursorOf: ({ notification_id }) => notification_id,
      },
    );
    return { status: 200, body: items, headers };
  },
});
