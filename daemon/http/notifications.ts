/** Handlers of notifications: each operator has read marks of their own. */
import { NOTIFICATION_LIST_LIMIT, type notificationRoutes } from '../../src/contract/notifications.js';
import { clampLimit } from '../../src/contract/shapes.js';
import type { Inbox } from '../notify/inbox.js';
import type { HandlersFor } from './handler.js';

export const notificationHandlers = (inbox: Inbox): HandlersFor<typeof notificationRoutes> => ({
  listNotifications: async ({ query, operator }) => {
    const limit = clampLimit(query.limit, NOTIFICATION_LIST_LIMIT.standard, NOTIFICATION_LIST_LIMIT.maximum);
    const unreadOnly = query.unread ?? false;
    return { status: 200, body: await inbox.list(operator.operator_id, { unreadOnly, limit }) };
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
