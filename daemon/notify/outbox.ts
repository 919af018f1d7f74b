/**
 * Sends due deliveries to channels. Pending deliveries and their outcomes are in the store, so a restart resumes them.
 * A delivery is never sent again once its success is committed.
 */
import { setMaxListeners } from 'node:events';
import { messageOf as messageOfError } from '../../src/kernel/fault.js';
import type { Service } from '../../src/kernel/service.js';
import type { Core } from '../core/core.js';
import type { WakeSignal } from '../core/event-bus.js';
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

/** Maximum deliveries in flight per channel. */
const PARALLEL = 2;
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
  /** Deliveries in flight, by channel ID and by notification `seq`. */
  private readonly running = new Map<string, Map<number, Promise<void>>>();
  /** End of the pause of a channel configuration (`placeOf`), in milliseconds of the monotonic clock. */
  private readonly paused = new Map<string, number>();
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
    await Promise.all([...this.running.values()].flatMap((of) => [...of.values()]));
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
    const { signal, clock, logger } = this.options;
    const done = this.deliver(delivery)
      .catch((error: unknown) => {
        if (this.cancel.signal.aborted) return;
        // The outcome was not recorded, so the delivery is sent again. The pause keeps a full disk from causing a retry loop.
        this.paused.set(placeOf(channel), clock.monotonic() + TROUBLE_MS);
        logger.error('a delivery could not be recorded', { ...keyOf(delivery), reason: messageOfError(error) });
      })
      .finally(() => {
        running.delete(delivery.seq);
        signal.set();
      });
    running.set(delivery.seq, done);
  }

  private async deliver(delivery: DeliveryRow): Promise<void> {
    const { db, clock, sender, log, isMaintenance } = this.options;
    // An attempt that was stored while the due ones were read must not be repeated.
    const current = await findDelivery(db, delivery);
    if (current === null || current.next_at === null || current.attempts !== delivery.attempts) return;
    if (isMaintenance()) return log.suppressed(delivery);
    const channel = await findChannel(db, delivery.channel_id);
    const notification = await findNotificationBySeq(db, delivery.seq);
    if (channel === null || notification === null) return;
    const attempt = await sender.attempt(channel, messageOfRow(notification), this.cancel.signal);
    const retryAfter = attempt.retryAfterMs ?? 0;
    // `Retry-After` applies to the receiver, so the other notifications of the channel wait as well.
    if (retryAfter > 0) this.paused.set(placeOf(channel), clock.monotonic() + retryAfter);
    await log.attempted({ channel, notification, attempt });
  }
}

const placeOf = ({ channel_id, row_version }: ChannelRow): string => `${channel_id} ${row_version}`;

const keyOf = ({ channel_id, seq }: DeliveryRow) => ({ channel: channel_id, seq });
