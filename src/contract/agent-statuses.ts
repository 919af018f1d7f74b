/** Statuses of agents, without the schemas, which commands that list agents do not load. */
export const AGENT_STATUSES = ['pending', 'approved', 'rejected'] as const;

export type AgentStatus = (typeof AGENT_STATUSES)[number];
