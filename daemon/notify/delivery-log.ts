/** Records the outcome of deliveries: delivered, to be retried, or failed, which raises an event. */
import type { JsonObject } from '../../src/kernel/json.js';
import type { Core } from '../core/core.js';
import { SYSTEM } from '../core/domain-event.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import type { Attempt, DeliveryReason } from './attempt.js';
import { type ChannelRow, channelParty, findChannel, pauseChannel, updateChannel } from './channel-store.js';
import {
  type DeliveryKey,
  type DeliveryRow,
  endPendingDeliveries,
  findDelivery,
  updateDelivery,
} from './delivery-store.js';
import type { NotificationRow } from './notification-store.js';

interface DeliveryLogOptions extends Pick<Core, 'clock' | 'uow'> {
  /** Returns a uniform number in [0, 1). */
  readonly random: () => number;
}

interface Attempted {
  /** Row of the channel at the time of the attempt. */
  readonly channel: ChannelRow;
  readonly notification: NotificationRow;
  readonly attempt: Attempt;
}

/** HTTP status for an address that is permanently gone. */
const GONE = 410;

export class DeliveryLog {
  private readonly options: DeliveryLogOptions;

  constructor(options: DeliveryLogOptions) {
    this.options = options;
  }

  async suppressed(delivery: DeliveryKey): Promise<void> {
    const { uow, clock } = this.options;
    await uow.write(async (tx) => {
      if ((await findPending(tx, delivery)) === null) return;
      await updateDelivery(tx, delivery, { state: 'suppressed', next_at: null, updated_at: clock.now() });
    });
  }

  async attempted({ channel: sentTo, notification, attempt }: Attempted): Promise<void> {
    const { uow, clock } = this.options;
    await uow.write(async (tx, emit) => {
      const channel = await findChannel(tx, sentTo.channel_id);
      const delivery = await findPending(tx, { channel_id: sentTo.channel_id, seq: notification.seq });
      if (channel === null || delivery === null) return;
      await this.note(tx, channel, attempt);
      if (attempt.delivered) return this.end(tx, delivery, attempt);
      // An answer of the old address, also a 410, does not concern a new one.
      const isCurrent = channel.row_version === sentTo.row_version;
      if (attempt.pauseMs !== null && !isCurrent) return;
      if (attempt.pauseMs !== null) {
        await pauseChannel(tx, channel, clock.now() + attempt.pauseMs);
        if (!this.isTooOld(notification)) return;
        return this.giveUp(
          tx,
          emit,
          { channel, notification, attempt, delivery },
          `within ${LONGEST_WAIT / HOUR} hours`,
        );
      }
      if (attempt.status === GONE && isCurrent) return this.disable(tx, emit, { channel, notification, attempt });
      await this.retry(tx, emit, { channel, notification, attempt, delivery });
    });
  }

  private async note(tx: Queryable, { channel_id }: ChannelRow, { delivered, status, error }: Attempt): Promise<void> {
    await updateChannel(tx, channel_id, {
      attempted_at: this.options.clock.now(),
      attempt_status: status,
      attempt_error: error,
      ...(delivered ? { failing: 0, paused_until: null } : {}),
    });
  }

  /** Returns true for a notification that pauses have held back for too long. */
  private isTooOld({ timestamp }: NotificationRow): boolean {
    return this.options.clock.now() - timestamp > LONGEST_WAIT;
  }

  private end(tx: Queryable, delivery: DeliveryRow, { delivered, status, error }: Attempt): Promise<void> {
    return updateDelivery(tx, delivery, {
      state: delivered ? 'delivered' : 'failed',
      attempts: delivery.attempts + 1,
      next_at: null,
      status_code: status,
      error,
      updated_at: this.options.clock.now(),
    });
  }

  private async disable(tx: Queryable, emit: Emit, attempted: Attempted): Promise<void> {
    const { channel, attempt } = attempted;
    const now = this.options.clock.now();
    await updateChannel(tx, channel.channel_id, { disabled_at: now, failing: 1 });
    const error = attempt.error ?? '';
    await endPendingDeliveries(tx, channel.channel_id, { state: 'failed', error, updated_at: now });
    const summary = `The channel ${channel.name} was disabled: its address is gone (410). Give it another one.`;
    emitFailure(emit, attempted, { summary, metadata: { disabled: true, repeated: false } });
  }

  private async retry(tx: Queryable, emit: Emit, given: AttemptedDelivery): Promise<void> {
    const { attempt, delivery } = given;
    const { clock, random } = this.options;
    const attempts = delivery.attempts + 1;
    const delay = retryDelay(attempts, random);
    if (delay === null) return this.giveUp(tx, emit, given, `in ${attempts} attempts`);
    const now = clock.now();
    const { status: status_code, error } = attempt;
    await updateDelivery(tx, delivery, { attempts, next_at: now + delay, status_code, error, updated_at: now });
  }

  /** @param how bounds of the delivery, as the summary names them */
  private async giveUp(tx: Queryable, emit: Emit, given: AttemptedDelivery, how: string): Promise<void> {
    const { channel, attempt, delivery } = given;
    await this.end(tx, delivery, attempt);
    await updateChannel(tx, channel.channel_id, { failing: 1 });
    const summary = `A notification could not be delivered to the channel ${channel.name} ${how}: ${attempt.error}`;
    const attempts = delivery.attempts + 1;
    emitFailure(emit, given, { summary, metadata: { disabled: false, attempts, repeated: channel.failing === 1 } });
  }
}

type AttemptedDelivery = Attempted & { readonly delivery: DeliveryRow };

interface Failure {
  readonly summary: string;
  readonly metadata: JsonObject;
}

function emitFailure(emit: Emit, { channel, notification, attempt }: Attempted, { summary, metadata }: Failure): void {
  emit({
    type: 'channel.delivery_failed',
    actor: SYSTEM,
    target: channelParty(channel),
    summary,
    metadata: {
      notification_id: notification.id,
      of_delivery_failure: notification.event_type === 'channel.delivery_failed',
      status_code: attempt.status,
      reason: attempt.reason,
      ...metadata,
    },
  });
}

/** Returns the delivery if it is still pending, else null. */
async function findPending(tx: Queryable, key: DeliveryKey): Promise<DeliveryRow | null> {
  const delivery = await findDelivery(tx, key);
  return delivery?.state === 'pending' ? delivery : null;
}

export class DeliveryProblem extends Error {
  override readonly name = 'DeliveryProblem';
  readonly reason: DeliveryReason;

  /** @param message description of the failure, without secrets */
  constructor(reason: DeliveryReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Milliseconds to wait after each failed attempt except the last. */
const DELAYS: readonly number[] = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR];
/** Maximum fraction added to a delay, so that deliveries that failed together are not retried together. */
const JITTER = 0.2;
/** Age in milliseconds at which a notification fails whose channel is paused again and again. */
const LONGEST_WAIT = 24 * HOUR;

/**
 * Returns the milliseconds until the next attempt; null after the last one.
 * @param attempts number of attempts so far, including the one that just failed
 * @param random returns a uniform number in [0, 1)
 */
function retryDelay(attempts: number, random: () => number): number | null {
  const delay = DELAYS[attempts - 1];
  return delay === undefined ? null : Math.round(delay * (1 + JITTER * random()));
}
