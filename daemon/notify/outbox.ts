/**
 * Sends due deliveries to channels, to each channel one after the other. Pending deliveries and their outcomes are in the store, so a restart resumes them.
 * A delivery is never sent again once its success is committed.
 */
import { setMaxListeners } from 'node:events';
import { messageOf as messageOfError } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import type { WakeSignal } from '../core/event-bus.js';
import { pauseLeft } from './channel-pause.js';
import { type ChannelRow, findChannel, listChannels } from './channel-store.js';
import type { DeliveryLog } from './delivery-log.js';
import { type DeliveryRow, dueDeliveries, findDelivery, nextDeliveryAt } from './delivery-store.js';
import { messageOfRow } from './message.js';
import { findNotificationBySeq } from './notification-store.js';
import type { Sender } from './sender.js';

interface OutboxOptions extends Pick<Core, 'clock' | 'db' | 'logger'> {
  readonly sender: Sender;
  readonly log: DeliveryLog;
  /** Set when a delivery may be due. */
  readonly signal: WakeSignal;
  readonly isMaintenance: () => boolean;
}

/** Maximum milliseconds between two polls for due deliveries. */
const LOOK_MS = 30_000;
/** Milliseconds to back off after a failed read or write of the store. */
const TROUBLE_MS = 30_000;
/** Grace period of deliveries in flight when the orchestrator stops, in milliseconds. */
const FAREWELL_MS = 2_000;

export class Outbox implements Service {
  readonly name = 'outbox of notifications';
  private readonly options: OutboxOptions;
  private readonly cancel = new AbortController();
  /** Deliveries in flight, by channel ID. */
  private readonly running = new Map<string, Promise<void>>();
  /** Milliseconds of the monotonic clock until which a channel waits, because an outcome could not be stored. */
  private readonly troubled = new Map<string, number>();
  private isStopping = false;
  private loop: Promise<void> = Promise.resolve();

  constructor(options: OutboxOptions) {
    this.options = options;
    // Each delivery in flight adds a listener, so Node's leak warning does not apply.
    setMaxListeners(0, this.cancel.signal);
  }

  async start(): Promise<void> {
    this.loop = this.run();
  }

  /** Stops the loop and drains. A delivery without an answer within the grace period is sent again after the next start. */
  async stop(): Promise<void> {
    this.isStopping = true;
    this.options.signal.set();
    await this.loop;
    const timer = setTimeout(() => this.cancel.abort(new Error('the orchestrator stops')), FAREWELL_MS);
    await Promise.all(this.running.values());
    clearTimeout(timer);
  }

  private async run(): Promise<void> {
    const { signal, logger } = this.options;
    while (!this.isStopping) {
      let pause = TROUBLE_MS;
      try {
        pause = await this.startDue();
      } catch (error) {
        logger.error('notifications could not be sent, it is tried again', { reason: messageOfError(error) });
      }
      if (!this.isStopping) await signal.wait(pause);
    }
  }

  /** Starts the due deliveries of all enabled channels. Returns the milliseconds until the next poll. */
  private async startDue(): Promise<number> {
    const { db } = this.options;
    const pauses: number[] = [];
    for (const channel of await listChannels(db)) {
      if (channel.disabled_at === null) pauses.push(await this.startDueOf(channel));
    }
    return Math.min(LOOK_MS, ...pauses);
  }

  private async startDueOf(channel: ChannelRow): Promise<number> {
    const { db, clock } = this.options;
    const { channel_id: channelId } = channel;
    // The end of a delivery sets the signal.
    if (this.running.has(channelId)) return LOOK_MS;
    const now = clock.now();
    const rest = Math.max(pauseLeft(channel, now), (this.troubled.get(channelId) ?? 0) - clock.monotonic());
    if (rest > 0) return rest;
    this.troubled.delete(channelId);
    const [due] = await dueDeliveries(db, { channelId, now, limit: 1 });
    if (due !== undefined) {
      this.begin(due);
      return LOOK_MS;
    }
    const next = await nextDeliveryAt(db, channelId, now);
    return next === null ? LOOK_MS : next - now;
  }

  private begin(delivery: DeliveryRow): void {
    const { signal, clock, logger } = this.options;
    const { channel_id: channelId } = delivery;
    const done = this.deliver(delivery)
      .catch((error: unknown) => {
        if (this.cancel.signal.aborted) return;
        // The outcome was not recorded, so the delivery is sent again. The pause keeps a full disk from causing a retry loop.
        this.troubled.set(channelId, clock.monotonic() + TROUBLE_MS);
        logger.error('a delivery could not be recorded', { ...keyOf(delivery), reason: messageOfError(error) });
      })
      .finally(() => {
        this.running.delete(channelId);
        signal.set();
      });
    this.running.set(channelId, done);
  }

  private async deliver(delivery: DeliveryRow): Promise<void> {
    const { db, sender, log, isMaintenance } = this.options;
    // An attempt that was stored while the due ones were read must not be repeated.
    const current = await findDelivery(db, delivery);
    if (current === null || current.next_at === null || current.attempts !== delivery.attempts) return;
    if (isMaintenance()) return log.suppressed(delivery);
    const channel = await findChannel(db, delivery.channel_id);
    const notification = await findNotificationBySeq(db, delivery.seq);
    if (channel === null || notification === null) return;
    const attempt = await sender.attempt(channel, messageOfRow(notification), this.cancel.signal);
    await log.attempted({ channel, notification, attempt });
  }
}

const keyOf = ({ channel_id, seq }: DeliveryRow) => ({ channel: channel_id, seq });
