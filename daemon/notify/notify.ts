/** Wires notifications, their channels and the outbox. */
import type { NewId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import { WakeSignal } from '../core/event-bus.js';
import type { ChannelCipher } from '../secrets/ciphers.js';
import { ChannelService } from './channel-service.js';
import { ChannelTester } from './channel-tester.js';
import { DeliveryLog } from './delivery-log.js';
import type { DialOptions } from './dial.js';
import { Inbox } from './inbox.js';
import { deleteLoginAddressesBefore } from './notification-rules.js';
import { NotificationWriter } from './notification-writer.js';
import { OfflineWatch } from './offline-watch.js';
import { Outbox } from './outbox.js';
import { Sender } from './sender.js';

interface NotifyOptions {
  readonly cipher: ChannelCipher;
  readonly network: DialOptions;
  readonly queue: NotificationQueue;
  readonly isMaintenance: () => boolean;
  /** Returns a uniform number in [0, 1). */
  readonly random: () => number;
}

/** The part that the unit of work depends on, and that is therefore created first. */
interface NotificationQueue {
  readonly writer: NotificationWriter;
  /** Set when a delivery may be due. */
  readonly outboxSignal: WakeSignal;
  /** Notes, within a unit of work, that a delivery may be due once it is committed. */
  noteDue(): void;
  /** Call it after each commit: what was noted can be read now. */
  committed(): void;
}

export interface Notify {
  readonly channels: ChannelService;
  readonly tester: ChannelTester;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly offlineWatch: OfflineWatch;
  /** Deletes login addresses that have been unused for `ADDRESS_DAYS`. */
  pruneAddresses(): Promise<void>;
}

/** Days without a login after which an address counts as new again. */
const ADDRESS_DAYS = 180;
const DAY = 86_400_000;

/** Returns the writer of notifications and the signal that it sets. */
export function createNotificationQueue(options: {
  readonly newId: NewId;
  readonly isMaintenance: () => boolean;
}): NotificationQueue {
  const outboxSignal = new WakeSignal();
  let isDue = false;
  const noteDue = () => {
    isDue = true;
  };
  const committed = () => {
    if (isDue) outboxSignal.set();
    isDue = false;
  };
  return { outboxSignal, noteDue, committed, writer: new NotificationWriter({ ...options, onRaised: noteDue }) };
}

export function createNotify(
  core: Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'>,
  own: NotifyOptions,
): Notify {
  const options = { ...core, ...own };
  const { db, ageTime, queue } = options;
  const sender = new Sender(options);
  const log = new DeliveryLog(options);
  return {
    channels: new ChannelService({ ...options, policy: options.network.policy, noteDue: queue.noteDue }),
    tester: new ChannelTester({ ...options, sender, noteDue: queue.noteDue }),
    inbox: new Inbox(options),
    outbox: new Outbox({ ...options, sender, log, signal: queue.outboxSignal }),
    offlineWatch: new OfflineWatch({ ...options, writer: queue.writer }),
    pruneAddresses: () => deleteLoginAddressesBefore(db, ageTime() - ADDRESS_DAYS * DAY),
  };
}
