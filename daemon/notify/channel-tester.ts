/** Tests a channel: sends a message at once, waits for the response and reports it. */
import type { ChannelTest } from '../../src/contract/channels.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Core } from '../core/core.js';
import type { RequestContext } from '../core/domain-event.js';
import type { Attempt } from './attempt.js';
import {
  type ChannelRow,
  channelEvent,
  channelParty,
  pauseChannel,
  requireChannel,
  updateChannel,
} from './channel-store.js';
import { makeDeliveriesDue } from './delivery-store.js';
import { type Message, messageOf } from './message.js';
import type { Sender } from './sender.js';

interface ChannelTesterOptions extends Pick<Core, 'clock' | 'db' | 'newId' | 'uow'> {
  readonly sender: Sender;
  /** Notes, within a unit of work, that a delivery may be due once it is committed. */
  readonly noteDue: () => void;
}

export class ChannelTester {
  private readonly options: ChannelTesterOptions;

  constructor(options: ChannelTesterOptions) {
    this.options = options;
  }

  /**
   * Sends a test message and returns the outcome. Also sends to a disabled or paused channel; a success enables it and
   * ends the pause.
   * Throws `channel_not_found`, `delivery_failed`, and the signal's reason when it is aborted with a `Fault`.
   */
  async test(id: string, context: RequestContext, signal: AbortSignal): Promise<ChannelTest> {
    const { db, clock, sender } = this.options;
    const row = await requireChannel(db, id);
    const begun = clock.monotonic();
    const attempt = await sender.attempt(row, this.message(row, context), signal).catch((error: unknown) => {
      throw signal.aborted && signal.reason instanceof Fault ? signal.reason : error;
    });
    const duration = Math.round(clock.monotonic() - begun);
    await this.note(row, attempt, context);
    if (attempt.delivered && attempt.status !== null) {
      return { delivered: true, status_code: attempt.status, duration_ms: duration };
    }
    throw new Fault('delivery_failed', `the channel ${row.name} could not be reached: ${attempt.error}`, {
      data: { reason: attempt.reason, status_code: attempt.status, duration_ms: duration },
    });
  }

  private message(row: ChannelRow, { actor }: RequestContext): Message {
    const { clock, newId } = this.options;
    return messageOf({
      id: newId(),
      type: 'channel.tested',
      summary: `This is a test of the channel ${row.name}, sent by ${actor.name}.`,
      timestamp: clock.now(),
      actor,
      target: channelParty(row),
      metadata: {},
    });
  }

  private async note(row: ChannelRow, attempt: Attempt, context: RequestContext): Promise<void> {
    const { uow, clock, noteDue } = this.options;
    const { delivered, status, reason, error, pauseMs } = attempt;
    await uow.write(async (tx, emit) => {
      await updateChannel(tx, row.channel_id, {
        attempted_at: clock.now(),
        attempt_status: status,
        attempt_error: error,
        ...(delivered ? { disabled_at: null, failing: 0, paused_until: null } : {}),
      });
      if (pauseMs !== null) await pauseChannel(tx, row, clock.now() + pauseMs);
      if (delivered) await makeDeliveriesDue(tx, row.channel_id, clock.now());
      noteDue();
      const what = `tested the channel ${row.name}: ${error ?? 'delivered'}`;
      emit(
        channelEvent('channel.tested', what, { row, context, metadata: { delivered, status_code: status, reason } }),
      );
    });
  }
}
