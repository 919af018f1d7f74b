/** The source of the orchestrator's address: given by the user, or announced by discovery packets. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../kernel/clock.js';
import type { Logger } from '../../kernel/logger.js';
import { lastOrchestrator } from '../agent-status.js';
import type { Trust } from '../first-contact.js';
import type { OrchestratorAddress } from '../link/orchestrator-address.js';
import { type AddressCandidate, type AddressSource, DiscoveredAddress } from './discovered-address.js';
import { PacketVerifier } from './discovery-packets.js';

/** An address given by the user. */
class FixedAddress implements AddressSource {
  readonly candidate: AddressCandidate;

  constructor(target: OrchestratorAddress) {
    this.candidate = { address: target, announcedKey: null };
  }

  async start(): Promise<void> {}

  stop(): void {}

  async untilKnown(): Promise<void> {}

  async pause(ms: number, signal: AbortSignal): Promise<boolean> {
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    return false;
  }

  setConnected(): void {}

  abandon(): boolean {
    return false;
  }
}

/** UDP port on which the agent waits for discovery packets. */
export interface DiscoveryPort {
  readonly discoveryPort: number;
}

interface AddressSourceOptions {
  readonly target: OrchestratorAddress | DiscoveryPort;
  readonly dataDir: string;
  readonly trustOnFirstUse: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function createAddressSource(
  { target, dataDir, trustOnFirstUse, clock, logger }: AddressSourceOptions,
  trust: Trust,
): AddressSource {
  if ('host' in target) return new FixedAddress(target);
  if (trust.expected === null && !trustOnFirstUse) {
    logger.warn('no discovery packet will be followed: no key of an orchestrator is known here', {
      hint: 'start the agent with --orchestrator-key HEX, or with --trust-on-first-use',
    });
  }
  const verifier = new PacketVerifier({ clock, pinned: () => trust.expected, trustOnFirstUse });
  // The last address is useful only together with a known key.
  const last = trust.expected === null ? null : lastOrchestrator(dataDir);
  return new DiscoveredAddress({ port: target.discoveryPort, verifier, last, clock, logger });
}
