/** Lists notifications for an operator and records which ones the operator has read. */
import {
  NOTIFICATION_LIST_LIMIT,
  type NotificationList,
  type notificationRoutes,
} from '../../src/contract/notifications.js';
import { clampLimit } from '../../src/contract/shapes.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { HandlersFor } from '../http/handler.js';
import { pageFrom } from '../http/query-string.js';
import { severityOf } from './message.js';
import { countUnread, findNotification, listNotifications, markAllRead, markRead } from './notification-store.js';

type InboxOptions = Pick<Core, 'db' | 'uow'>;

interface InboxQuery {
  readonly unreadOnly: boolean;
  readonly limit: number;
  /** ID of the notification that the page ends before. The page is empty when it is gone, because the oldest are pruned first. */
  readonly before?: string | null | undefined;
}

export class Inbox {
  private readonly options: InboxOptions;

  constructor(options: InboxOptions) {
    this.options = options;
  }

  async list(operatorId: string, query: InboxQuery): Promise<NotificationList> {
    const { db } = this.options;
    const rows = await listNotifications(db, { operatorId, ...query });
    return {
      notifications: rows.map(({ id, event_id, event_type, severity, summary, timestamp, read }) => ({
        id,
        event_id,
        event_type,
        severity: severityOf(severity),
        summary,
        timestamp_ms: timestamp,
        read: read === 1,
      })),
      unread_count: await countUnread(db, operatorId),
    };
  }

  /** Marks a notification as read for an operator. Throws `notification_not_found`. */
  async read(operatorId: string, id: string): Promise<void> {
    await this.options.uow.write(async (tx) => {
      const row = await findNotification(tx, id);
      if (row === null) throw new Fault('notification_not_found', `there is no notification ${id}`);
      await markRead(tx, operatorId, row.seq);
    });
  }

  async readAll(operatorId: string): Promise<void> {
    await this.options.uow.write((tx) => markAllRead(tx, operatorId));
  }
}

/** Returns the route handlers of notifications. Each operator has separate read marks. */
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
