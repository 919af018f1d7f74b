/** Wires notifications, their channels and the outbox. */
import type { NewId } from '../../src/kernel/ids.js';
import type { Core } from '../core/core.js';
import { Doorbell } from '../core/event-bus.js';
import type { ChannelVault } from '../secrets/vaults.js';
import { Absences } from './absences.js';
import { ChannelService } from './channel-service.js';
import { ChannelTester } from './channel-tester.js';
import { DeliveryLog } from './delivery-log.js';
import type { DialOptions } from './dial.js';
import { Inbox } from './inbox.js';
import { Outbox } from './outbox.js';
import { Raising } from './raising.js';
import { deleteLoginAddressesBefore } from './raising-rules.js';
import { Sender } from './sender.js';

interface NotifyOptions {
  readonly vault: ChannelVault;
  readonly network: DialOptions;
  readonly raiser: Raiser;
  readonly isMaintenance: () => boolean;
  /** Returns a uniform number in [0, 1). */
  readonly random: () => number;
}

/** The part that the unit of work depends on, and that is therefore created first. */
interface Raiser {
  readonly raising: Raising;
  /** Rung when a delivery may be due. */
  readonly bell: Doorbell;
}

export interface Notify {
  readonly channels: ChannelService;
  readonly tester: ChannelTester;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly absences: Absences;
  /** Deletes login addresses that have been unused for `ADDRESS_DAYS`. */
  pruneAddresses(): Promise<void>;
}

/** Days without a login after which an address counts as new again. */
const ADDRESS_DAYS = 180;
const DAY = 86_400_000;

/** Returns the writer of notifications and the bell that it rings. */
export function createRaiser(options: { readonly newId: NewId; readonly isMaintenance: () => boolean }): Raiser {
  const bell = new Doorbell();
  return { bell, raising: new Raising({ ...options, onRaised: () => bell.ring() }) };
}

export function createNotify(
  core: Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger' | 'newId' | 'uow'>,
  own: NotifyOptions,
): Notify {
  const options = { ...core, ...own };
  const { db, ageTime, raiser } = options;
  const sender = new Sender(options);
  const log = new DeliveryLog(options);
  return {
    channels: new ChannelService({ ...options, policy: options.network.policy, bell: raiser.bell }),
    tester: new ChannelTester({ ...options, sender, bell: raiser.bell }),
    inbox: new Inbox(options),
    outbox: new Outbox({ ...options, sender, log, bell: raiser.bell }),
    absences: new Absences({ ...options, raising: raiser.raising }),
    pruneAddresses: () => deleteLoginAddressesBefore(db, ageTime() - ADDRESS_DAYS * DAY),
  };
}
