/** Notifications and their channels, wired together. */
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
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** The part that the unit of work needs, and so is there before it. */
interface Raiser {
  readonly raising: Raising;
  /** Rings when there is something to send. */
  readonly bell: Doorbell;
}

export interface Notify {
  readonly channels: ChannelService;
  readonly tester: ChannelTester;
  readonly inbox: Inbox;
  readonly outbox: Outbox;
  readonly absences: Absences;
  /** Forgets where operators have not logged in from for long. */
  pruneAddresses(): Promise<void>;
}

/** An address that an operator has not logged in from for that long is new again. */
const ADDRESS_DAYS = 180;
const DAY = 86_400_000;

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
