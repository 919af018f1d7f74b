/** Where the agent looks for its orchestrator: at the place that it was told, or where discovery packets say. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../kernel/clock.js';
import type { PublicKeyHex } from '../../kernel/ids.js';
import type { Logger } from '../../kernel/logger.js';
import { lastOrchestrator } from '../agent-status.js';
import type { Trust } from '../first-contact.js';
import type { Target } from '../link/orchestrator-address.js';
import { DiscoveredGuide } from './discovered-address.js';
import { PacketJudge } from './discovery-packets.js';

export interface Place {
  readonly target: Target;
  /** The key that was announced for it; null for a place that was told otherwise. */
  readonly announcedKey: PublicKeyHex | null;
}

export interface Guide {
  /** Throws `port_in_use` or `invalid_config` when it cannot look. */
  start(): Promise<void>;
  stop(): void;
  /** Where to dial now; null while it is not known. */
  readonly place: Place | null;
  /** Waits until `place` is known or `signal` aborts. */
  found(signal: AbortSignal): Promise<void>;
  /** Waits that many milliseconds, or less when there is another place to try at once: then it is true. */
  rest(ms: number, signal: AbortSignal): Promise<boolean>;
  /** Says whether there is a connection; as long as there is, no other place is looked for. */
  connected(is: boolean): void;
  /** Another key answers at the place. False when there is no other place to look for. */
  forsake(): boolean;
}

/** The place that somebody typed. */
export class FixedGuide implements Guide {
  readonly place: Place;

  constructor(target: Target) {
    this.place = { target, announcedKey: null };
  }

  async start(): Promise<void> {}

  stop(): void {}

  async found(): Promise<void> {}

  async rest(ms: number, signal: AbortSignal): Promise<boolean> {
    await sleep(ms, undefined, { signal }).catch(() => undefined);
    return false;
  }

  connected(): void {}

  forsake(): boolean {
    return false;
  }
}

/** The UDP port on which discovery packets are awaited. */
export interface DiscoveryPort {
  readonly discoveryPort: number;
}

export interface GuideOptions {
  readonly target: Target | DiscoveryPort;
  readonly dataDir: string;
  readonly trustOnFirstUse: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

export function createGuide({ target, dataDir, trustOnFirstUse, clock, logger }: GuideOptions, trust: Trust): Guide {
  if ('host' in target) return new FixedGuide(target);
  if (trust.expected === null && !trustOnFirstUse) {
    logger.warn('no discovery packet will be followed: no key of an orchestrator is known here', {
      hint: 'start the agent with --orchestrator-key HEX, or with --trust-on-first-use',
    });
  }
  const judge = new PacketJudge({ clock, pinned: () => trust.expected, trustOnFirstUse });
  // Where it was is of use only together with the key that it had.
  const last = trust.expected === null ? null : lastOrchestrator(dataDir);
  return new DiscoveredGuide({ port: target.discoveryPort, judge, last, clock, logger });
}
