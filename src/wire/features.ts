/**
 * Abilities that an agent announces in its inventory. An agent without one would silently ignore what an apply asks for, so the
 * orchestrator refuses such an apply before anything changes.
 */

/** Each feature with what the agent can do, as it completes "is too old to …". */
export const FEATURE_PURPOSES = {
  verify: 'run the health checks of modules',
  files: 'take the content of files beside modules',
  purge: 'delete what nothing declares in a directory',
  packages: 'report the versions of packages',
  forward: 'forward connections',
  copy: 'copy files, or runs on a system on which it cannot',
  confirm: 'undo an apply by itself, or runs on a system on which it cannot',
} as const;

export type AgentFeature = keyof typeof FEATURE_PURPOSES;

/** The features that this release of the agent announces. */
export const AGENT_FEATURES = Object.keys(FEATURE_PURPOSES);
