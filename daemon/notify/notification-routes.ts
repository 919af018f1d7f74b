/** Handlers of notifications: each operator has read marks of their own. */
import { NOTIFICATION_LIST_LIMIT, type notificationRoutes } from '../../src/contract/notifications.js';
import { clampLimit } from '../../src/contract/shapes.js';
import type { HandlersFor } from '../http/handler.js';
import { pageFrom } from '../http/query-string.js';
import type { Inbox } from './inbox.js';

export const notificationHandlers = (inbox: Inbox): HandlersFor<typeof notificationRoutes> => ({
  listNotifications: async ({ query, operator }) => {
    const limit = clampLimit(query.limit, NOTIFICATION_LIST_LIMIT.standard, NOTIFICATION_LIST_LIMIT.maximum);
    const unreadOnly = query.unread ?? false;
    const before = query.cursor ?? null;
    const { notifications, unread_count } = await inbox.list(operator.operator_id, {
      unreadOnly,
      limit: limit + 1,
      before,
    });
    const { items, headers } = pageFrom(notifications, {
      path: '/notifications',
      query: { ...query, limit },
      cursorOf: ({ id }) => id,
    });
    return { status: 200, body: { notifications: items, unread_count }, headers };
  },
  readAllNotifications: async ({ operator }) => {
    await inbox.readAll(operator.operator_id);
    return { status: 204, body: undefined };
  },
  readNotification: async ({ params, operator }) => {
    await inbox.read(operator.operator_id, params.id);
    return { status: 204, body: undefined };
  },
});
