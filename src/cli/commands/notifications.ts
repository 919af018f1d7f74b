/** The commands of `orch notifications`. */
import type { Notification } from '../../contract/notifications.js';
import type { Context } from '../context.js';
import { argumentList, defineCommand } from '../define-command.js';
import { count, type TimeCell, timeCells } from '../format.js';
import { readList } from '../list-pages.js';
import { flag, integer } from '../options.js';
import { type Column, lines, type Outcome, type Span, styled, type TableView } from '../outcome.js';
import { watchList, watchOption } from '../watch-list.js';

const NOTIFICATION_COLUMNS: readonly Column[] = [
  { title: '' },
  { title: 'TIME', whole: true },
  { title: 'EVENT', whole: true },
  { title: 'SUMMARY' },
  { title: 'SEVERITY', wide: true },
  { title: 'ID', whole: true, spare: 1 },
];

/** `orch notifications list`. */
export const listNotifications = defineCommand({
  examples: ['orch notifications', 'orch notifications --unread --watch'],
  detail: ['Newest first. Each operator has separate read marks.'],
  access: 'viewer',
  columns: NOTIFICATION_COLUMNS,
  options: {
    unread: flag('only unread notifications'),
    limit: integer('N', 'maximum number [50]', 1),
    watch: watchOption,
  },
  run: async (context, { unread, limit, watch }) => {
    const api = await context.api();
    const read = async (reading: Context): Promise<Outcome> => {
      const { signal } = reading;
      const { first, items: notifications } = await readList(reading, {
        limit,
        read: (page) =>
          api.callWithHeaders('listNotifications', { query: { unread: unread || null, ...page }, signal }),
        itemsOf: (body) => body.notifications,
      });
      const count = first.unread_count;
      if (count > 0) reading.note(`${count} unread; mark them with: orch notifications read-all`);
      return {
        body: { ...first, notifications },
        records: notifications,
        names: notifications.map(({ id }) => id),
        view: notificationTable(notifications, {
          unreadOnly: unread,
          timeOf: timeCells(reading.clock.now(), reading.globals),
        }),
      };
    };
    return watch ? watchList(context, api, { read, category: null }) : read(context);
  },
});

/** `orch notifications read`. */
export const readNotifications = defineCommand({
  examples: ['orch notifications read 01JQ2Z6T0V5X8Y4M3N7P9R1S2T'],
  detail: ['The read marks of others stay.'],
  access: 'viewer',
  args: { ids: argumentList('ID', 'IDs of notifications', 'notification') },
  run: async (context, { ids }) => {
    const api = await context.api();
    for (const id of ids) await api.call('readNotification', { params: { id }, signal: context.signal });
    return { names: ids, view: lines(`Marked ${count(ids.length, 'notification')} as read.`) };
  },
});

/** `orch notifications read-all`. */
export const readAllNotifications = defineCommand({
  examples: ['orch notifications read-all'],
  detail: ['The read marks of others stay.'],
  access: 'viewer',
  run: async (context) => {
    const api = await context.api();
    await api.call('readAllNotifications', { signal: context.signal });
    return { view: lines('Marked every notification as read.') };
  },
});

const notificationTable = (
  notifications: readonly Notification[],
  { unreadOnly, timeOf }: { readonly unreadOnly: boolean; readonly timeOf: TimeCell },
): TableView => ({
  kind: 'table',
  columns: NOTIFICATION_COLUMNS,
  rows: notifications.map((one) => [
    one.read ? ' ' : styled('strong', '*'),
    timeOf(Math.floor(one.timestamp_ms / 1000)),
    eventType(one),
    one.summary,
    one.severity,
    one.id,
  ]),
  empty: unreadOnly ? 'You have read everything.' : 'No notifications.',
});

function eventType({ event_type: text, severity }: Notification): Span {
  if (severity === 'critical') return styled('bad', text);
  return severity === 'warning' ? styled('warn', text) : text;
}
