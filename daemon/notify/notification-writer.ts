/** Stores the notifications that events raise, and their pending deliveries, in the transaction of the events. */
import type { RecordedEvent } from '../core/audit-log.js';
import type { Core } from '../core/core.js';
import type { EventType } from '../core/domain-event.js';
import type { Queryable } from '../database/schema.js';
import { accepts } from './channel-filter.js';
import { enabledChannels } from './channel-store.js';
import { insertDeliveries } from './delivery-store.js';
import { messageOf } from './message.js';
import { NOTIFICATION_RULES, type NotificationDraft } from './notification-rules.js';
import { insertNotification } from './notification-store.js';

interface NotificationWriterOptions extends Pick<Core, 'newId'> {
  /** Returns true while a maintenance window is active: notifications are then stored and not sent. */
  readonly isMaintenance: () => boolean;
  /** Called when deliveries were stored, before the commit. */
  readonly onRaised: () => void;
}

export class NotificationWriter {
  private readonly options: NotificationWriterOptions;

  constructor(options: NotificationWriterOptions) {
    this.options = options;
  }

  /** Stores the notifications of `events`. The caller passes the transaction that records the events. */
  async record(tx: Queryable, events: readonly RecordedEvent[]): Promise<void> {
    for (const event of events) {
      const raised = (await NOTIFICATION_RULES[event.type]?.(tx, event)) ?? null;
      if (raised !== null) await this.raise(tx, event, raised);
    }
  }

  async raise(tx: Queryable, event: RecordedEvent, { summary, channels }: NotificationDraft): Promise<void> {
    const { newId, isMaintenance, onRaised } = this.options;
    const message = messageOf({ ...event, id: newId(), summary });
    const seq = await insertNotification(tx, { ...message, event_id: event.id });
    const suppressed = isMaintenance();
    const state = suppressed ? 'suppressed' : 'pending';
    const receivers = await receiversOf(tx, event.type, channels);
    const { timestamp } = event;
    const common = { seq, state, attempts: 0, next_at: suppressed ? null : timestamp, updated_at: timestamp };
    await insertDeliveries(
      tx,
      receivers.map((channel_id) => ({ ...common, channel_id })),
    );
    onRaised();
  }
}

async function receiversOf(
  tx: Queryable,
  type: EventType,
  channels: NotificationDraft['channels'],
): Promise<readonly string[]> {
  if (channels === 'none') return [];
  const all = (await enabledChannels(tx)).filter((channel) => accepts(channel, type)).map((one) => one.channel_id);
  return channels === 'all' ? all : all.filter((id) => id !== channels.except);
}
