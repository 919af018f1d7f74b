/**
 * Sends what is due to channels. What is to be sent is in the store, and so is what came of it: a restart goes on where it
 * was, and nothing is sent again once its success is written.
 */
import { setMaxListeners } from 'node:events';
import { messageOf as messageOfError } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import type { Doorbell } from '../core/event-bus.js';
import { type ChannelRow, findChannel, listChannels } from './channel-store.js';
import type { DeliveryLog } from './delivery-log.js';
import { type DeliveryRow, dueDeliveries, nextDeliveryAt } from './delivery-store.js';
import { messageOfRow } from './message.js';
import { findNotificationBySeq } from './notification-store.js';
import type { Sender } from './sender.js';

interface OutboxOptions extends Pick<Core, 'clock' | 'db' | 'logger'> {
  readonly sender: Sender;
  readonly log: DeliveryLog;
  /** Rings when there may be something new. */
  readonly bell: Doorbell;
  readonly isMaintenance: () => boolean;
}

/** Deliveries of a channel at a time. */
const PARALLEL = 2;
/** It looks at least that often, in milliseconds. */
const LOOK_MS = 30_000;
/** How long a channel is left alone when the store could not be read or written. */
const TROUBLE_MS = 30_000;
/** What is under way when the orchestrator stops gets so long. */
const FAREWELL_MS = 2_000;

export class Outbox implements Service {
  readonly name = 'outbox of notifications';
  private readonly options: OutboxOptions;
  private readonly cancel = new AbortController();
  /** What is under way, by channel and notification. */
  private readonly running = new Map<string, Map<number, Promise<void>>>();
  /** Until when a channel with that configuration is left alone, by the monotonic clock. */
  private readonly paused = new Map<string, number>();
  private isStopping = false;
  private loop: Promise<void> = Promise.resolve();

  constructor(options: OutboxOptions) {
    this.options = options;
    // Every delivery that is under way listens to it.
    setMaxListeners(0, this.cancel.signal);
  }

  async start(): Promise<void> {
    this.loop = this.run();
  }

  /** What has no answer in time is sent again after the next start. */
  async stop(): Promise<void> {
    this.isStopping = true;
    this.options.bell.ring();
    await this.loop;
    const timer = setTimeout(() => this.cancel.abort(new Error('the orchestrator stops')), FAREWELL_MS);
    await Promise.all([...this.running.values()].flatMap((of) => [...of.values()]));
    clearTimeout(timer);
  }

  private async run(): Promise<void> {
    const { bell, logger } = this.options;
    while (!this.isStopping) {
      let pause = TROUBLE_MS;
      try {
        pause = await this.beginDue();
      } catch (error) {
        logger.error('notifications could not be sent, it is tried again', { reason: messageOfError(error) });
      }
      if (!this.isStopping) await bell.wait(pause);
    }
  }

  /** Returns for how many milliseconds there is nothing to begin. */
  private async beginDue(): Promise<number> {
    const { db } = this.options;
    const pauses: number[] = [];
    for (const channel of await listChannels(db)) {
      if (channel.disabled_at === null) pauses.push(await this.beginDueOf(channel));
    }
    return Math.min(LOOK_MS, ...pauses);
  }

  private async beginDueOf(channel: ChannelRow): Promise<number> {
    const { db, clock } = this.options;
    const { channel_id: channelId } = channel;
    const rest = (this.paused.get(placeOf(channel)) ?? 0) - clock.monotonic();
    if (rest > 0) return rest;
    this.paused.delete(placeOf(channel));
    const now = clock.now();
    const running = this.running.get(channelId) ?? new Map<number, Promise<void>>();
    this.running.set(channelId, running);
    const due = await dueDeliveries(db, { channelId, now, limit: PARALLEL + running.size });
    for (const delivery of due) {
      if (running.size >= PARALLEL) break;
      if (!running.has(delivery.seq)) this.begin(running, channel, delivery);
    }
    const next = await nextDeliveryAt(db, channelId, now);
    return next === null ? LOOK_MS : next - now;
  }

  private begin(running: Map<number, Promise<void>>, channel: ChannelRow, delivery: DeliveryRow): void {
    const { bell, clock, logger } = this.options;
    const done = this.deliver(delivery)
      .catch((error: unknown) => {
        if (this.cancel.signal.aborted) return;
        // What came of it is not written, so it is sent again; not at once, for the store may be full.
        this.paused.set(placeOf(channel), clock.monotonic() + TROUBLE_MS);
        logger.error('a delivery could not be recorded', { ...keyOf(delivery), reason: messageOfError(error) });
      })
      .finally(() => {
        running.delete(delivery.seq);
        bell.ring();
      });
    running.set(delivery.seq, done);
  }

  private async deliver(delivery: DeliveryRow): Promise<void> {
    const { db, clock, sender, log, isMaintenance } = this.options;
    if (isMaintenance()) return log.suppressed(delivery);
    const channel = await findChannel(db, delivery.channel_id);
    const notification = await findNotificationBySeq(db, delivery.seq);
    if (channel === null || notification === null) return;
    const attempt = await sender.attempt(channel, messageOfRow(notification), this.cancel.signal);
    const retryAfter = attempt.retryAfterMs ?? 0;
    // Whoever asks for a pause is not bothered with other notifications meanwhile.
    if (retryAfter > 0) this.paused.set(placeOf(channel), clock.monotonic() + retryAfter);
    await log.attempted({ channel, notification, attempt });
  }
}

const placeOf = ({ channel_id, row_version }: ChannelRow): string => `${channel_id} ${row_version}`;

const keyOf = ({ channel_id, seq }: DeliveryRow) => ({ channel: channel_id, seq });
