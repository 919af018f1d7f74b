/** Joins discovery with the key of the orchestrator and the port that agents are to find; decides nothing. */
import { type KeyObject, sign } from 'node:crypto';
import type { Clock } from '../src/kernel/clock.js';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import type { Logger } from '../src/kernel/logger.js';
import type { Settings } from '../src/settings/serve.js';
import type { UnitOfWork } from './core/unit-of-work.js';
import { Discovery } from './discovery/discovery.js';
import { systemNetwork } from './discovery/system-network.js';
import type { AgentListener } from './fleet/agent-listener.js';

export interface DiscoveryWiringOptions {
  readonly uow: UnitOfWork;
  readonly settings: () => Settings;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly privateKey: KeyObject;
  readonly publicKey: PublicKeyHex;
  readonly listener: AgentListener;
}

export function wireDiscovery(options: DiscoveryWiringOptions): Discovery {
  const { uow, settings, clock, logger, privateKey, publicKey, listener } = options;
  return new Discovery({
    uow,
    clock,
    logger,
    network: systemNetwork,
    publicKey,
    sign: (message) => sign(null, message, privateKey).toString('hex'),
    place: () => {
      const { host, port } = listener.address();
      return { listening: host, advertised: settings().advertised_host, port };
    },
  });
}
