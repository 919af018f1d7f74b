/** The features that this agent announces to the orchestrator. */
import { AGENT_FEATURES } from '../wire/features.js';
import { bootTime } from './snapshot/boot-time.js';

/**
 * Returns the features of the agent on this machine. Without an ID of the boot, no later process knows how much of the time for a
 * confirmation is left; Windows and macOS have none. Copies reach files through descriptors of their directories, as only Linux can.
 */
export const featuresHere = (boot: string | null = bootTime().boot): string[] =>
  AGENT_FEATURES.filter(
    (feature) => (feature !== 'confirm' || boot !== null) && (feature !== 'copy' || process.platform === 'linux'),
  );
