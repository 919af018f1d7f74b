/** States and limits of agents' upgrades, for commands that need no schemas. */

/** `requested` until the agent answers; the last three are final. */
export const UPGRADE_STATES = [
  'requested',
  'downloading',
  'waiting',
  'switching',
  'succeeded',
  'failed',
  'rolled_back',
] as const;

export const isFinalUpgrade = (state: (typeof UPGRADE_STATES)[number]): boolean =>
  state === 'succeeded' || state === 'failed' || state === 'rolled_back';

/** Seconds for which an agent waits for applies and terminals to end. */
export const UPGRADE_WAIT = { standard: 3600, maximum: 86_400 } as const;
