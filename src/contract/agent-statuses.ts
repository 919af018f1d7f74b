/** How agents stand to the fleet. Apart from the schemas, as commands that list agents need no more than this. */
export const AGENT_STATUSES = ['pending', 'approved', 'rejected'] as const;

export type AgentStatus = (typeof AGENT_STATUSES)[number];
