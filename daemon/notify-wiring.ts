/** Joins the room of notifications with the network, the secrets of its channels and the settings; decides nothing. */
import type { Clock } from '../src/kernel/clock.js';
import type { NewId } from '../src/kernel/ids.js';
import type { Logger } from '../src/kernel/logger.js';
import type { Settings } from '../src/settings/serve.js';
import type { UnitOfWork } from './core/unit-of-work.js';
import type { Queryable } from './database/schema.js';
import { AddressPolicy } from './notify/address-policy.js';
import { createNotify, type Notify, type Raiser } from './notify/notify.js';
import { ownAddresses, resolveHost } from './notify/system-network.js';
import { addressRules } from './room-settings.js';
import type { Secrets } from './secrets/secrets.js';

export interface NotifyWiringOptions {
  readonly db: Queryable;
  readonly uow: UnitOfWork;
  readonly settings: () => Settings;
  readonly clock: Clock;
  /** Unix milliseconds by which age is judged. */
  readonly ageTime: () => number;
  readonly newId: NewId;
  readonly logger: Logger;
  readonly raiser: Raiser;
  readonly secrets: Secrets;
  readonly isMaintenance: () => boolean;
  /** On which the orchestrator itself listens. */
  readonly ownPorts: () => readonly number[];
}

export function wireNotify(options: NotifyWiringOptions): Notify {
  const { settings, secrets, ownPorts } = options;
  const policy = new AddressPolicy({
    rules: () => addressRules(settings()),
    own: () => ({ ports: ownPorts(), addresses: ownAddresses() }),
  });
  return createNotify({
    ...options,
    vault: secrets.channels,
    network: { policy, resolve: resolveHost },
    random: Math.random,
  });
}
