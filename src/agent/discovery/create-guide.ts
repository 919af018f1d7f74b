/** Makes the guide that fits what the agent was told of its orchestrator. */
import type { Clock } from '../../kernel/clock.js';
import type { Logger } from '../../kernel/logger.js';
import { lastOrchestrator } from '../agent-status.js';
import type { Trust } from '../first-contact.js';
import type { Target } from '../target.js';
import { DiscoveredGuide } from './discovered-guide.js';
import { FixedGuide, type Guide } from './guide.js';
import { PacketJudge } from './packet-judge.js';

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
