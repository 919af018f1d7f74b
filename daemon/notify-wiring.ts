/** Joins the room of notifications with the network, the secrets of its channels and the settings; decides nothing. */
import type { Core } from './core/core.js';
import { AddressPolicy } from './notify/address-policy.js';
import { createNotify, type Notify, type Raiser } from './notify/notify.js';
import { ownAddresses, resolveHost } from './notify/system-network.js';
import { addressRules } from './room-settings.js';
import type { Secrets } from './secrets/secrets.js';

export interface NotifyWiringOptions
  extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'logger' | 'newId' | 'settings' | 'uow'> {
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
