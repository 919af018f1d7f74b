/** Number of agents of one rollout in flight. In a file of its own, so that commands show it without the schemas of rollouts. */
export const ROLLOUT_CONCURRENCY = { standard: 32, maximum: 1000 } as const;
