/** Notifications: events that need attention, with a read mark per operator. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import { SEVERITIES } from './audit.js';
import { route } from './route.js';
import { Cursor, limitOf, NEXT_PAGE, pathId, ulidOf } from './shapes.js';

export const NOTIFICATION_LIST_LIMIT = { standard: 50, maximum: 500 } as const;

export const NotificationSchema = closed({
  id: ulidOf('ID of the notification'),
  event_id: Type.String({ description: 'ID of the audit event that raised it' }),
  event_type: Type.String({ description: 'Type of that event' }),
  severity: Type.Enum(SEVERITIES, { description: 'How much attention it needs' }),
  summary: Type.String({ description: 'The event as a sentence' }),
  timestamp_ms: Type.Integer({ description: 'Unix milliseconds of the event' }),
  read: Type.Boolean({ description: 'True when the calling operator has read it' }),
});
export type Notification = Type.Static<typeof NotificationSchema>;

export const NotificationListSchema = closed({
  notifications: Type.Array(NotificationSchema, { description: 'Newest first' }),
  unread_count: Type.Integer({ description: 'Number of all unread notifications, listed or not' }),
});
export type NotificationList = Type.Static<typeof NotificationListSchema>;

const params = closed({ id: pathId('ID of the notification') });

export const notificationRoutes = {
  listNotifications: route({
    id: 'listNotifications',
    summary: 'List notifications, newest first; a Link header names the next page',
    tag: 'notifications',
    method: 'GET',
    path: '/notifications',
    access: 'read',
    grants: 'filtered',
    query: closed({
      unread: optional(Type.Boolean({ description: 'true: only those that you have not read' })),
      limit: optional(limitOf(NOTIFICATION_LIST_LIMIT.standard, NOTIFICATION_LIST_LIMIT.maximum)),
      cursor: Cursor,
    }),
    answers: { 200: NotificationListSchema },
    headers: NEXT_PAGE,
    faults: [],
  }),
  readAllNotifications: route({
    id: 'readAllNotifications',
    summary: 'Mark every notification as read by you',
    tag: 'notifications',
    method: 'POST',
    path: '/notifications/read-all',
    access: 'read',
    grants: 'filtered',
    answers: { 204: null },
    faults: [],
  }),
  readNotification: route({
    id: 'readNotification',
    summary: 'Mark a notification as read by you',
    tag: 'notifications',
    method: 'POST',
    path: '/notifications/{id}/read',
    access: 'read',
    grants: 'filtered',
    params,
    answers: { 204: null },
    faults: ['notification_not_found'],
  }),
} as const;
