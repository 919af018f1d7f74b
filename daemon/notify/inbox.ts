/** Lists notifications for an operator and records which ones the operator has read. */

import {
  NOTIFICATION_LIST_LIMIT,
  type NotificationList,
  type notificationRoutes,
} from '../../src/contract/notifications.js';
import { clampLimit } from '../../src/contract/shapes.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { Rights } from '../core/rights.js';
import { keepsReadable, type Machines } from '../fleet/machines.js';
import type { HandlersFor } from '../http/handler.js';
import { pageFrom } from '../http/query-string.js';
import { severityOf } from './message.js';
import {
  countUnread,
  findNotification,
  listNotifications,
  markAllRead,
  markRead,
  type NotificationRow,
} from './notification-store.js';

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

  /** @param isShown keeps the notifications that the operator may read; null for all */
  async list(operatorId: string, query: InboxQuery, isShown: IsShown | null): Promise<NotificationList> {
    const { db } = this.options;
    const rows =
      isShown === null
        ? await listNotifications(db, { operatorId, ...query })
        : await this.shown(operatorId, query, isShown);
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
      unread_count: isShown === null ? await countUnread(db, operatorId) : await this.countShown(operatorId, isShown),
    };
  }

  /** Returns the page of those that are shown. */
  private async shown(operatorId: string, { limit, ...query }: InboxQuery, isShown: IsShown) {
    const found: Awaited<ReturnType<typeof listNotifications>>[number][] = [];
    for (let before = query.before; found.length < limit; ) {
      const rows = await listNotifications(this.options.db, { operatorId, ...query, before, limit: SLICE });
      found.push(...rows.filter(isShown));
      before = rows.at(-1)?.id;
      if (rows.length < SLICE) break;
    }
    return found.slice(0, limit);
  }

  private async countShown(operatorId: string, isShown: IsShown): Promise<number> {
    const all = { unreadOnly: true, limit: Number.MAX_SAFE_INTEGER };
    return (await this.shown(operatorId, all, isShown)).length;
  }

  /** Marks a notification as read for an operator. Throws `notification_not_found`. */
  async read(operatorId: string, id: string, isShown: IsShown | null): Promise<void> {
    await this.options.uow.write(async (tx) => {
      const row = await findNotification(tx, id);
      if (row === null || isShown?.(row) === false)
        throw new Fault('notification_not_found', `there is no notification ${id}`);
      await markRead(tx, operatorId, row.seq);
    });
  }

  async readAll(operatorId: string): Promise<void> {
    await this.options.uow.write((tx) => markAllRead(tx, operatorId));
  }
}

/** Notifications read at once. */
const SLICE = 500;

type IsShown = (row: Pick<NotificationRow, 'actor' | 'target' | 'event_id'>) => boolean;

/** Returns what an operator with grants may read: what is about their machines, and of the rest what they did; null for everything. */
async function shownTo(machines: Machines, operatorId: string, rights: Rights): Promise<IsShown | null> {
  if (!rights.isLimited) return null;
  const isReadable = keepsReadable(await machines.history(rights));
  return ({ actor, target, event_id }) =>
    target.type === 'agent'
      ? isReadable({ nodeId: target.id, id: event_id })
      : actor.type === 'operator' && actor.id === operatorId;
}

/** Returns the route handlers of notifications. Each operator has separate read marks. */
export const notificationHandlers = (inbox: Inbox, machines: Machines): HandlersFor<typeof notificationRoutes> => ({
  listNotifications: async ({ query, operator, rights }) => {
    const limit = clampLimit(query.limit, NOTIFICATION_LIST_LIMIT.standard, NOTIFICATION_LIST_LIMIT.maximum);
    const unreadOnly = query.unread ?? false;
    const before = query.cursor ?? null;
    const isShown = await shownTo(machines, operator.operator_id, rights);
    const page = { unreadOnly, limit: limit + 1, before };
    const { notifications, unread_count } = await inbox.list(operator.operator_id, page, isShown);
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
  readNotification: async ({ params, operator, rights }) => {
    const isShown = await shownTo(machines, operator.operator_id, rights);
    await inbox.read(operator.operator_id, params.id, isShown);
    return { status: 204, body: undefined };
  },
});
