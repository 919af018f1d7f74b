/** Joins discovery with the key of the orchestrator and the port that agents are to find; decides nothing. */
import { type KeyObject, sign } from 'node:crypto';
import type { PublicKeyHex } from '../src/kernel/ids.js';
import type { Core } from './core/core.js';
import { Discovery } from './discovery/discovery.js';
import { systemNetwork } from './discovery/system-network.js';
import type { AgentListener } from './fleet/agent-listener.js';

export interface DiscoveryWiringOptions extends Pick<Core, 'clock' | 'logger' | 'settings' | 'uow'> {
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
